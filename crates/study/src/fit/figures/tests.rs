//! Figures that a fit goes by: those of its drive that can all be true.

use results::published::parse;

use super::*;

const HEAD: &str = "id,document,device,capacity_gb,mode,os,workload,threads,queue_per_thread,phase,\
                    metric,value_low,value_high,confidence,note\n";

/// Rows of one load of one drive, given by metric, values and confidence.
fn rows(lines: &[&str]) -> Vec<FigureRow> {
    let line = |(index, line): (usize, &&str)| {
        format!("R{index},a review,duo,640,stock,linux,4k-rand-write,16,16,primary,{line},\n")
    };
    let lines: String = lines.iter().enumerate().map(line).collect();
    parse(&format!("{HEAD}{lines}"), "figures.csv").unwrap()
}

fn found(rows: &[FigureRow], devices: u32) -> Vec<Contradiction> {
    contradictions(&rows.iter().collect::<Vec<_>>(), devices)
}

#[test]
fn a_rate_and_a_latency_whose_product_is_the_queue_agree() {
    // 256 outstanding at 2 ms are 128,000 a second.
    assert!(found(&rows(&["iops,128000,128000,exact", "avg_latency_ms,2,2,exact"]), 1).is_empty());
    let near = rows(&["iops,128000,128000,exact", "avg_latency_ms,2.1,2.1,exact"]);
    assert!(found(&near, 1).is_empty(), "printed with two digits");
    let off = rows(&["avg_latency_ms,3,3,exact", "iops,128000,128000,exact"]);
    let told = found(&off, 1);
    assert_eq!(told.len(), 1, "in either order");
    assert_eq!(told[0].rows, ["R0", "R1"]);
    assert_eq!(told[0].text, "128000 IOPS at 3 ms make 384 requests outstanding, not 256");
}

#[test]
fn devices_of_a_group_have_a_queue_each() {
    let rows = rows(&["iops,1024000,1024000,exact", "avg_latency_ms,2,2,exact"]);
    assert_eq!(found(&rows, 1).len(), 1);
    assert!(found(&rows, 8).is_empty());
}

#[test]
fn one_metric_published_twice_may_differ_by_a_twentieth() {
    let twice = |second: &str| {
        let second = format!("iops,{second},{second},exact");
        found(&rows(&["iops,1000,1000,exact", &second]), 1)
    };
    assert!(twice("1040").is_empty());
    let told = twice("1200");
    assert_eq!(told[0].text, "iops is 1000 in one and 1200 in the other, for one load");
}

#[test]
fn ranges_that_overlap_do_not_contradict_each_other() {
    assert!(found(&rows(&["iops,900,1100,exact", "iops,1080,1300,exact"]), 1).is_empty());
    assert_eq!(found(&rows(&["iops,900,1000,exact", "iops,1100,1300,exact"]), 1).len(), 1);
}

#[test]
fn maxima_may_differ_as_they_like() {
    let rows = rows(&["max_latency_ms,10,10,exact", "max_latency_ms,90,90,exact"]);
    assert!(found(&rows, 1).is_empty());
}

#[test]
fn a_garbled_figure_contradicts_nothing() {
    let rows = rows(&["iops,1000,1000,exact", "iops,5000,5000,garbled"]);
    assert!(found(&rows, 1).is_empty());
}

#[test]
fn figures_of_different_loads_say_nothing_of_each_other() {
    let mut rows = rows(&["iops,1000,1000,exact", "iops,5000,5000,exact"]);
    let differs = |change: fn(&mut FigureRow), rows: &[FigureRow]| {
        let mut rows = rows.to_vec();
        change(&mut rows[1]);
        found(&rows, 1).is_empty()
    };
    assert!(differs(|row| row.workload = "4k-rand-read".into(), &rows));
    assert!(differs(|row| row.threads = "8".into(), &rows));
    assert!(differs(|row| row.queue_per_thread = "8".into(), &rows));
    assert!(differs(|row| row.phase = Phase::Burst, &rows));
    assert!(differs(|row| row.mode = "fast".into(), &rows));
    assert!(differs(|row| row.os = "windows".into(), &rows));
    rows[1].os = "any".into();
    assert_eq!(found(&rows, 1).len(), 1, "any host is this one, too");
}

#[test]
fn a_load_without_numbers_is_not_held_to_littles_law() {
    let mut rows = rows(&["iops,128000,128000,exact", "avg_latency_ms,9,9,exact"]);
    for row in &mut rows {
        row.threads = "64+".into();
    }
    assert!(found(&rows, 1).is_empty());
}

fn duo() -> DriveSpec {
    ssd::catalogue::find("iodrive-duo").unwrap()
}

/// A table with one row about the Duo, whose name, workload and metric are given.
fn table(id: &str, workload: &str, metric: &str) -> String {
    format!(
        "{HEAD}other,a review,Another 1,1,stock,any,4k-rand-read,1,1,primary,iops,1,1,exact,\n\
         {id},a review,Fusion-io ioDrive Duo MLC,640,stock,linux,{workload},16,16,primary,{metric},\
         1,1,exact,\n"
    )
}

fn refused(text: &str) -> Error {
    let rows = parse(text, "mine.csv").unwrap();
    rows_of(&duo(), &rows, (text, "mine.csv"), &[]).map(|_| ()).unwrap_err()
}

#[test]
fn rows_about_other_drives_are_left_out() {
    let text = table("A1", "4k-rand-write", "iops");
    let rows = parse(&text, "mine.csv").unwrap();
    let of = rows_of(&duo(), &rows, (&text, "mine.csv"), &[]).unwrap();
    let ids: Vec<&str> = of.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids, ["A1"]);
}

#[test]
fn a_row_with_a_slip_is_named_with_its_line_and_the_nearest_name() {
    let error = refused(&table("A1", "4k-rand-wirte", "iops"));
    assert_eq!(error.to_string(), "mine.csv:3: row A1: no workload is called `4k-rand-wirte`");
    assert_eq!(error.remedy(), "did you mean `4k-rand-write`?");
    let error = refused(&table("A1", "4k-rand-write", "avg_latency_us"));
    assert!(error.to_string().contains("no metric with its unit is called `avg_latency_us`"));
    assert_eq!(error.remedy(), "did you mean `avg_latency_ms`?");
}

#[test]
fn a_table_without_the_drive_names_the_devices_that_it_has() {
    let text = format!(
        "{HEAD}A1,a review,Another 1,960,stock,any,4k-rand-read,1,1,primary,iops,1,1,exact,\n"
    );
    let error = refused(&text);
    assert!(error.to_string().starts_with("mine.csv: no figure of "), "{error}");
    assert!(error.remedy().ends_with("which has: Another 1 960"), "{}", error.remedy());
}

#[test]
fn the_line_of_a_row_is_that_of_its_first_cell() {
    let text = "id,x\nA10,A1\n A1 ,y\n";
    assert_eq!(line_of(text, "A1"), 3);
    assert_eq!(line_of(text, "A10"), 2);
    assert_eq!(line_of(text, "gone"), 1, "the head, where nothing is known");
}
