//! The pages, all of them part of the program: they need nothing from elsewhere.

use super::reply::Reply;

const HTML: &str = "text/html; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

/// The page of one drive.
pub(super) fn of_drive() -> Reply {
    Reply::new(HTML, include_str!("../../assets/dashboard.html"))
}

/// The page of many.
pub(super) fn of_fleet() -> Reply {
    Reply::new(HTML, include_str!("../../assets/fleet.html"))
}

/// Returns a style sheet or a script of the pages by its path; none if there is none.
pub(super) fn part(path: &str) -> Option<Reply> {
    let (kind, text) = match path {
        "/base.css" => (CSS, report::GROUND_STYLE),
        "/uPlot.css" => (CSS, report::CHART_STYLE),
        "/uPlot.js" => return Some(Reply::new(JAVASCRIPT, report::chart_script())),
        "/dashboard.css" => (CSS, include_str!("../../assets/dashboard.css")),
        "/shared.js" => (JAVASCRIPT, include_str!("../../assets/shared.js")),
        "/dashboard.js" => (JAVASCRIPT, include_str!("../../assets/dashboard.js")),
        "/fleet.css" => (CSS, include_str!("../../assets/fleet.css")),
        "/fleet.js" => (JAVASCRIPT, include_str!("../../assets/fleet.js")),
        _ => return None,
    };
    Some(Reply::new(kind, text))
}
