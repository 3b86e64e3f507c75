//! Margins, the project's own table, and verdicts by what the models do.

use lab::progress::SilentProgress;
use ssd::catalogue;

use super::*;

fn figure(name: &str, value: f64) -> SetupFigure {
    let setup = SetupName { drive: name.into(), format: "stock".into(), host: "linux".into() };
    SetupFigure { setup, value, interval_share: None }
}

fn order(is_high_better: bool, groups: &[&[&SetupFigure]]) -> Relation {
    let names = |group: &&[&SetupFigure]| group.iter().map(|it| it.setup.clone()).collect();
    Relation::Order { is_high_better, groups: groups.iter().map(names).collect() }
}

#[test]
fn the_margin_of_an_order_is_that_of_its_nearest_pair() {
    let all = [figure("a", 300.0), figure("b", 200.0), figure("c", 190.0)];
    let [a, b, c] = &all;
    let of = |relation: &Relation| format!("{:.3}", margin(relation, &all));
    assert_eq!(of(&order(true, &[&[a], &[b], &[c]])), "1.053");
    assert_eq!(of(&order(true, &[&[a], &[b, c]])), "1.500", "those of a group are not compared");
    assert_eq!(of(&order(true, &[&[b], &[a]])), "0.667");
    assert_eq!(of(&order(false, &[&[c, b], &[a]])), "1.500", "less is better");
    let nothing = [figure("x", 0.0), figure("y", 0.0)];
    assert!(margin(&order(false, &[&[&nothing[0]], &[&nothing[1]]]), &nothing) >= 1.0);
}

#[test]
fn the_margin_of_a_ratio_is_to_the_nearer_bound() {
    let all = [figure("a", 300.0), figure("b", 200.0)];
    let ratio = |low, high| {
        let (numerator, denominator) = (all[0].setup.clone(), all[1].setup.clone());
        let relation = Relation::Ratio { numerator, denominator, low, high };
        format!("{:.2}", margin(&relation, &all))
    };
    assert_eq!(ratio(Some(1.25), Some(3.0)), "1.20");
    assert_eq!(ratio(None, Some(1.2)), "0.80");
    assert_eq!(ratio(Some(2.0), None), "0.75");
}

#[test]
fn every_statement_of_the_table_can_be_run() {
    let (statements, drives) = (statements(), catalogue::drives());
    let work = StatementWork::new(&statements, &drives);
    let lacking: Vec<&String> = work.figures.iter().filter_map(|it| it.as_ref().err()).collect();
    assert!(lacking.is_empty() && statements.len() > 140, "{lacking:?}");
    let simulations = work.needed.simulations(&drives, &work.plans);
    let steps: usize = simulations.iter().map(|it| it.plan.steps.len()).sum();
    assert!(simulations.len() < 60 && steps < 500, "{} {steps}", simulations.len());
}

#[test]
fn a_statement_holds_ties_or_fails_by_what_the_models_do() {
    let head = "id,review,relation,better,order,numerator,denominator,ratio_low,ratio_high,\
                protocol,suite,workload,step_load,window,reduce,step_metric\n";
    let step = "iometer,4k-read,4k-rand-read,T4Q1,step,,iops\n";
    let (duo, drive) = ("iodrive-duo/stock/windows", "warpdrive-slp-300/stock/windows");
    let rows = format!(
        "holds,x,order,high,{duo} > {drive},,,,,{step}fails,x,order,high,{drive} > {duo},,,,,{step}\
         tie,x,order,high,{duo} > {duo},,,,,{step}ratio,y,ratio,,,{duo},{drive},1.6,2.2,{step}\
         away,y,ratio,,,{duo},no-drive/stock/linux,1,2,{step}"
    );
    let statements = parse(&format!("{head}{rows}"), "mine.csv").unwrap();
    let judged = judge(&statements, &catalogue::drives(), 2, &SilentProgress).unwrap();
    let verdict = |id: &str| judged.iter().find(|it| it.id == id).map(|it| it.verdict.clone());
    assert_eq!(verdict("holds"), Some(RankingVerdict::Holds), "{judged:?}");
    assert_eq!(verdict("fails"), Some(RankingVerdict::Fails));
    assert_eq!(verdict("tie"), Some(RankingVerdict::Tie { is_narrow: true }));
    assert_eq!(verdict("ratio"), Some(RankingVerdict::Holds));
    let reason = "no model is named `no-drive`".to_owned();
    assert_eq!(verdict("away"), Some(RankingVerdict::NotRun { reason }));
    let tally = RankingTally::of(&judged);
    assert_eq!((tally.holds, tally.ties_narrow, tally.fails, tally.not_run), (2, 1, 1, 1));
    assert_eq!(tally.percent(), Some(75.0));
}
