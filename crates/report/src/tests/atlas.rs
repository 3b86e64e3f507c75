//! The page of all drives: what stands in its table, and what its script makes of it.

use results::baseline::BaselineRow;
use results::{Run, TargetKind};
use serde_json::json;

use super::browser::driven_to_its_end;
use crate::example::{FAST, STOCK, review_of_two, run};
use crate::{Atlas, AtlasColumn, AtlasFact, AtlasModel, AtlasRun, atlas};

/// Both formats of the Duo, a real drive measured likewise, and one with other data.
fn runs() -> Vec<Run> {
    let mut runs = review_of_two();
    let mut real = run(FAST);
    real.target.kind = TargetKind::BlockDevice;
    real.target.name = "/dev/nvme0n1".into();
    real.target.title = "Maker <9000>".into();
    real.target.format = "stock".into();
    let mut unlike = run(STOCK);
    unlike.target.title = "Unlike".into();
    unlike.target.name = "unlike".into();
    unlike.steps.iter_mut().for_each(|step| step.compressible_percent = 50.0);
    runs.extend([real, unlike]);
    runs
}

fn page(runs: &[Run]) -> String {
    let facts = |gb: Option<f64>| {
        vec![gb.map_or(AtlasFact::Unknown, AtlasFact::Number), AtlasFact::Text("U.2".into())]
    };
    let column = |name: &str, unit: &str| AtlasColumn { name: name.into(), unit: unit.into() };
    let row = BaselineRow {
        drive: "other".into(),
        title: "Other".into(),
        unvalidated: false,
        format: "stock".into(),
        model_version: 1,
        write_iops: 1_000.0,
        read_iops: 900_000.0,
        mixed_iops: 2_000.0,
        write_latency_ns_p999: 3_000_000,
    };
    let model = |title: &str, row: Option<BaselineRow>| AtlasModel {
        title: title.into(),
        unvalidated: row.is_none(),
        row,
        facts: facts(Some(7680.0)),
    };
    let of_runs = (0..runs.len())
        .map(|at| AtlasRun {
            page: format!("reviews/{at}.html"),
            facts: facts((at == 0).then_some(640.0)),
        })
        .collect();
    atlas(&Atlas {
        runs,
        of_runs,
        models: vec![model("Other", Some(row)), model("Unknown", None)],
        columns: vec![column("Capacity", "GB"), column("Interface", "")],
    })
}

/// The rows of the table.
fn rows(page: &str) -> Vec<&str> {
    let (_, table) = page.split_once("<tbody>").unwrap();
    let (table, _) = table.split_once("</tbody>").unwrap();
    table.split("</tr>").filter(|row| !row.is_empty()).collect()
}

#[test]
fn a_row_has_what_is_known_and_nothing_for_the_rest() {
    let runs = runs();
    let page = page(&runs);
    let rows = rows(&page);
    assert_eq!(rows.len(), 6, "four runs and two drives without one");
    let of = |name: &str| *rows.iter().find(|row| row.contains(name)).unwrap();
    let real = of("Maker &lt;9000&gt;");
    assert!(real.starts_with("<tr class=\"real\">"), "{real}");
    assert!(real.contains("<span>measured</span>") && real.contains("href=\"reviews/2.html\""));
    assert!(real.contains("<td></td><td class=\"words short\">U.2</td>"), "no capacity: {real}");
    assert!(real.contains("<td class=\"words\">linux, 4k-rand-write "), "conditions: {real}");
    let table = of(">Other<");
    assert!(table.contains("<td data-value=\"900000\">900K</td>"), "{table}");
    assert!(table.contains("<td data-value=\"3\">3</td>"), "milliseconds: {table}");
    assert!(!table.contains("href=") && !table.contains("checkbox"), "it has no run");
    let unknown = of(">Unknown<");
    assert_eq!(unknown.matches("<td></td>").count(), 5, "{unknown}");
    assert!(unknown.starts_with("<tr class=\"model\">"), "nothing of it is validated");
    let doubted = rows.iter().position(|row| row.contains("<td class=\"doubted\" data-value=\"82"));
    let sound = rows.iter().position(|row| row.contains("<td data-value=\"39024.5\">"));
    assert!(sound < doubted, "what is in doubt comes behind, however fast: {rows:?}");
    assert!(rows[5].contains(">Unknown<"), "what is unknown comes last: {rows:?}");
    let marked = of("high-performance").matches("class=\"doubted\"").count();
    assert!(marked >= 2, "the deviation of doubtful writes is in doubt");
}

#[test]
fn the_same_runs_give_the_same_bytes() {
    assert_eq!(page(&runs()), page(&runs()));
}

#[test]
fn a_reader_sorts_filters_and_compares() {
    let runs = runs();
    let Some(seen) = driven_to_its_end(&page(&runs), include_str!("atlas.js")) else { return };
    assert_eq!(seen["faults"], json!([]), "{seen}");
    assert_eq!(seen["rising"], json!(["Other", "Unknown"]), "the unknown comes last: {seen}");
    assert_eq!(seen["falling"], json!([true, "Unknown"]), "{seen}");
    assert_eq!(seen["sorted"], "descending");
    assert_eq!(seen["found"], json!(["Maker <9000>, stock"]));
    assert_eq!(seen["measured"], json!(["Maker <9000>, stock"]));
    assert_eq!(seen["closed"], json!([true, true]), "none and one are no comparison");

    // Two of one drive differ in one condition, which is what is compared: drawn together.
    assert_eq!(seen["formats"]["charts"], 6, "{seen}");
    assert_eq!(seen["formats"]["series"], 2);
    assert!(seen["formats"]["drawn"].as_u64() > Some(3), "{seen}");
    let conditions = seen["formats"]["conditions"].as_str().unwrap();
    assert!(conditions.contains("format") && conditions.contains("high-performance"));
    let order = seen["formats"]["order"].as_str().unwrap();
    assert!(order.contains("No order: format differs."), "{order}");

    // Like a measured drive: ordered, and the model is dashed.
    let order = seen["alike"]["order"].as_str().unwrap();
    assert!(order.contains("Maker <9000>, stock, 2.13 times "), "{order}");
    assert_eq!(seen["alike"]["dashes"], json!([1, 0]), "the sound one is first");

    // With other data: drawn apart.
    let caution = seen["unlike"]["caution"].as_str().unwrap();
    assert!(caution.contains("Drawn apart, since the runs differ in compressible data."));
    assert_eq!(seen["unlike"]["series"], 1);
    let address = seen["address"].as_str().unwrap();
    assert!(address.starts_with("#compare=") && address.contains(&runs[3].id), "{address}");
}
