//! Price of the drives, where one is known, for each unit of what they give.

use std::fmt::Write as _;

use results::Target;
use results::headlines::settled_write_iops;
use results::price::Price;

use crate::chart::Look;
use crate::number;
use crate::subject::Subject;
use crate::text::Text;

/// The table; empty where no price is known.
pub(super) fn part(subjects: &[Subject<'_>]) -> String {
    let price = |subject: &Subject<'_>| subject.run.target.price.clone();
    if subjects.iter().all(|subject| price(subject).is_none()) {
        return String::new();
    }
    let mut html = String::from(
        "<h3>Price</h3><div class=\"scroll\"><table class=\"host-cost\"><thead><tr>\
         <th scope=\"col\">Run</th><th scope=\"col\">Price</th>\
         <th scope=\"col\">for each GB</th><th scope=\"col\">for each 1,000 settled 4K writes/s\
         </th><th scope=\"col\">for each TB of rated endurance</th></tr></thead><tbody>",
    );
    for subject in subjects {
        let _ = write!(
            html,
            "<tr><th scope=\"row\" class=\"t{}\"><i class=\"key\"></i>{}</th>",
            Look::of_run(subject.index).tone,
            Text(&subject.label),
        );
        for cell in cells(subject, price(subject).as_ref()) {
            let _ = write!(html, "<td>{}</td>", Text(&cell));
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div>"
}

fn cells(subject: &Subject<'_>, price: Option<&Price>) -> [String; 4] {
    let Some(price) = price else { return [(); 4].map(|()| "–".to_owned()) };
    let Target { endurance_pb, .. } = &subject.run.target;
    let told = |value: Option<f64>| {
        value.map_or("–".to_owned(), |it| format!("{} {}", number::plain(it), price.currency))
    };
    let user_gb = subject.run.target.user_capacity_all_bytes() as f64 / 1e9;
    [
        format!("{} {} ({})", number::money(price.amount), price.currency, price.origin()),
        told(price.per_gb(user_gb)),
        told(settled_write_iops(subject.run).and_then(|iops| price.per_thousand_iops(iops))),
        told(endurance_pb.and_then(|it| price.per_tb_written(it))),
    ]
}
