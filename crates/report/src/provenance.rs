//! The foot of the page: exact versions, seeds, and the command that repeats each run.

use std::fmt::Write as _;

use results::Run;

use crate::subject::{Subject, seed};
use crate::text::Text;

/// The footer.
pub(crate) fn footer(subjects: &[Subject<'_>]) -> String {
    let mut html = String::from(
        "<footer id=\"provenance\"><h2>Provenance</h2><div class=\"scroll\"><table \
         class=\"origin\"><thead><tr><th scope=\"col\">Run</th><th scope=\"col\">Folder</th>\
         <th scope=\"col\">Begun</th><th scope=\"col\">Floatgate</th><th scope=\"col\">Model</th>\
         <th scope=\"col\">Schema</th><th scope=\"col\">Seed</th></tr></thead><tbody>",
    );
    let mut commands: Vec<String> = Vec::new();
    for subject in subjects {
        let run = subject.run;
        let model = run.model_version.map_or("–".into(), |version| version.to_string());
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td class=\"prose\">{}</td><td>{}</td><td>{}</td>\
             <td>{model}</td><td>{}</td><td>{}</td></tr>",
            Text(&subject.label),
            Text(&run.id),
            Text(run.begun()),
            Text(&run.floatgate_version),
            run.schema,
            seed(run).map_or("–".into(), |seed| seed.to_string()),
        );
        // The file of another program is no drive that could be reviewed.
        let command = run.imported_from().is_none().then(|| command(run));
        commands.extend(command.filter(|it| !commands.contains(it)));
    }
    html.push_str("</tbody></table></div>");
    if !commands.is_empty() {
        let commands = commands.join("\n");
        let _ = write!(html, "<p>To repeat it:</p><pre><code>{}</code></pre>", Text(&commands));
    }
    html + "<p class=\"small\">Charts become interactive through uPlot (MIT licence, \
            © Leon Sorokin), which is part of this file. This page loads nothing.</p></footer>\n"
}

/// Returns the command line that repeats `run`.
fn command(run: &Run) -> String {
    let name = if run.target.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c)) {
        run.target.name.clone()
    } else {
        format!("'{}'", run.target.name.replace('\'', "'\\''"))
    };
    let mut command = format!("floatgate review {name} --protocol {}", run.protocol);
    if run.target.kind.is_model() {
        let _ = write!(command, " --host {} --seed {}", run.target.host, run.seed);
        match run.target.time_lapse {
            1 => command.push_str(" --full-scale"),
            lapse => {
                let _ = write!(command, " --time-lapse {lapse}");
            }
        }
        let asked = run.steps.iter().find_map(|step| step.sampling.as_ref());
        if let Some(sampling) = asked {
            let _ = write!(command, " --precision {}%", sampling.percent());
        }
    }
    command
}
