//! The page: head with its security policy, table of contents, sections in order, scripts.

use std::fmt::Write as _;

use results::Run;
use results::mark::UNVALIDATED;
use results::sweep::Sweep;
use sha2::{Digest, Sha256};

use crate::atlas::{self, Atlas};
use crate::subject::{Subject, Suite, subjects, suites};
use crate::summary::applications;
use crate::text::{Text, anchor};
use crate::validation::{self, Validation};
use crate::{
    comparison, conclusion, conditions, first_screen, method, one_page, overview, platform,
    provenance, published, suite, summary, sweep,
};

const STYLE: &str = concat!(
    include_str!("../assets/vendor/uPlot.min.css"),
    include_str!("../assets/base.css"),
    include_str!("../assets/style.css"),
);
const UPLOT: &str = include_str!("../assets/vendor/uPlot.iife.min.js");
const LICENCE: &str = include_str!("../assets/vendor/uPlot.LICENSE.txt");
const SCRIPT: &str = include_str!("../assets/page.js");
const ONE_PAGE_STYLE: &str = include_str!("../assets/one_page.css");
const ATLAS_STYLE: &str = include_str!("../assets/atlas.css");
const ATLAS_SCRIPT: &str = include_str!("../assets/atlas.js");

/// The whole page; a brief one has only what is seen without unfolding it.
pub(crate) fn page(runs: &[Run], title: &str, is_brief: bool) -> String {
    let subjects = subjects(runs);
    let mut suites = suites(&subjects);
    for suite in &mut suites {
        suite.is_brief = is_brief;
    }
    let title = &titled(&subjects, title);
    let mut html = head(title);
    let _ = write!(
        html,
        "<body class=\"{}\"><a class=\"skip\" href=\"#summary\">Skip to the summary</a>\
         <div class=\"page\">{}<main>",
        origin(&subjects).0,
        contents(&subjects, &suites),
    );
    html.push_str(&overview::header(&subjects, title));
    html.push_str(&conditions::section(&subjects));
    html.push_str(&first_screen::section(&subjects, &suites));
    html.push_str(&overview::warnings(&subjects));
    html.push_str(&summary::section(&subjects, &suites));
    // Both are of requests.
    if !applications::are_all(&subjects) {
        html.push_str(&conclusion::section(&subjects, runs));
        html.push_str(&comparison::section(&subjects));
    }
    html.push_str(&published::section(&subjects));
    for suite in &suites {
        html.push_str(&suite::section(suite));
    }
    html.push_str(&method::section(&subjects, &suites));
    html.push_str(&platform::section(&subjects));
    html.push_str(&provenance::footer(&subjects));
    html + "</main></div>" + &end()
}

/// The page of verdict and sheet, which has no script.
pub(crate) fn on_one_page(runs: &[Run], title: &str) -> String {
    let subjects = subjects(runs);
    let suites = suites(&subjects);
    let title = &titled(&subjects, title);
    let style = [STYLE, ONE_PAGE_STYLE].concat();
    let body = one_page::body(&subjects, &suites, runs, title);
    format!(
        "{}<body class=\"one-page {}{}\"><main>{body}</main></body></html>\n",
        head_with(title, &style, &[]),
        origin(&subjects).0,
        if subjects.len() >= one_page::CROWDED_MIN { " crowded" } else { "" },
    )
}

/// The class of the page, and the words behind its title, by where its figures come from.
fn origin(subjects: &[Subject<'_>]) -> (&'static str, &'static str) {
    let is_model = |subject: &Subject<'_>| subject.run.target.kind.is_model();
    let is_known =
        |subject: &Subject<'_>| is_model(subject) || subject.run.imported_from().is_some();
    match subjects.iter().filter(|subject| is_model(subject)).count() {
        0 => ("measured", ""),
        all if all == subjects.len() => ("modelled", ", modelled"),
        _ if subjects.iter().all(is_known) => ("mixed", ", modelled and imported"),
        _ => ("mixed", ", modelled and measured"),
    }
}

/// `title`, which says where it is of models; the mark of an unvalidated one says it already.
fn titled(subjects: &[Subject<'_>], title: &str) -> String {
    match origin(subjects) {
        ("modelled", _) if title.ends_with(UNVALIDATED) => title.to_owned(),
        (_, words) => format!("{title}{words}"),
    }
}

/// The whole page of a sweep.
pub(crate) fn of_sweep(of: &Sweep) -> String {
    let head = head(&format!("{}: sweep, modelled", of.heading()));
    let (contents, body) = (sweep::contents(of), sweep::body(of));
    format!("{head}<body class=\"modelled\"><div class=\"page\">{contents}{body}</div>{}", end())
}

/// The whole page of a validation.
pub(crate) fn of_validation(of: &Validation) -> String {
    let head = head("Floatgate: models beside published figures");
    let (contents, body) = (validation::contents(), validation::body(of));
    format!("{head}<body class=\"validated\"><div class=\"page\">{contents}{body}</div>{}", end())
}

/// The whole page of an atlas.
pub(crate) fn of_atlas(of: &Atlas<'_>) -> String {
    let style = [STYLE, ATLAS_STYLE].concat();
    let scripts = [vendored(), SCRIPT.to_owned(), ATLAS_SCRIPT.to_owned()];
    let head = head_with("Floatgate: atlas of solid-state drives", &style, &scripts);
    let body = atlas::body(of);
    format!(
        "{head}<body class=\"atlas\"><a class=\"skip\" href=\"#drives\">Skip to the drives</a>\
         <div class=\"whole\"><main>{body}</main></div>{}",
        end_with(&scripts)
    )
}

/// The scripts, and the end of the page.
fn end() -> String {
    end_with(&scripts())
}

fn end_with(scripts: &[String]) -> String {
    format!("<script>{}</script></body></html>\n", scripts.join("</script><script>"))
}

/// The scripts of a page of charts.
fn scripts() -> [String; 2] {
    [vendored(), SCRIPT.to_owned()]
}

pub(crate) fn vendored() -> String {
    format!("/*!\n{LICENCE}*/\n{UPLOT}")
}

fn head(title: &str) -> String {
    head_with(title, STYLE, &scripts())
}

/// The head of a page, which allows this style and these scripts and nothing else.
fn head_with(title: &str, style: &str, scripts: &[String]) -> String {
    let scripts: Vec<String> = scripts.iter().map(|script| hash(script)).collect();
    let policy = format!(
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src {}; \
         script-src {}",
        hash(style),
        scripts.join(" "),
    );
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <meta name=\"referrer\" content=\"no-referrer\">\
         <title>{}</title><style>{style}</style></head>\n",
        Text(title),
    )
}

/// The hash by which a security policy allows `text`.
fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    format!("'sha256-{}'", base64(&digest))
}

/// Base64 (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = (0..3).fold(0_usize, |word, index| {
            word << 8 | usize::from(chunk.get(index).copied().unwrap_or(0))
        });
        for place in 0..4 {
            let digit = char::from(DIGITS[word >> (18 - 6 * place) & 63]);
            text.push(if place <= chunk.len() { digit } else { '=' });
        }
    }
    text
}

fn contents(subjects: &[Subject<'_>], suites: &[Suite<'_>]) -> String {
    let mut html = String::from(
        "<nav aria-label=\"Contents\"><p class=\"brand\">Floatgate</p><ol>\
         <li><a href=\"#top\">Verdict</a></li>\
         <li><a href=\"#summary\">Summary</a></li>",
    );
    let is_of_requests = !applications::are_all(subjects);
    if is_of_requests {
        html.push_str("<li><a href=\"#conclusion\">Conclusion</a></li>");
    }
    if is_of_requests && subjects.len() > 1 {
        html.push_str("<li><a href=\"#comparison\">Comparison</a></li>");
    }
    let has_figures = |run: &Run| run.published.len() + run.published_elsewhere.len() > 0;
    if subjects.iter().any(|subject| has_figures(subject.run)) {
        html.push_str("<li><a href=\"#published\">Published figures</a></li>");
    }
    for suite in suites {
        let _ = write!(
            html,
            "<li><a href=\"#suite-{}\">{}</a></li>",
            anchor(suite.name),
            Text(&suite.title),
        );
    }
    html + "<li><a href=\"#method\">How it was tested</a></li>\
            <li><a href=\"#drive\">The drive</a></li>\
            <li><a href=\"#provenance\">Provenance</a></li></ol></nav>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        assert_eq!(
            ["f", "fo", "foo", "foob"].map(|it| base64(it.as_bytes())),
            ["Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]
        );
    }
}
