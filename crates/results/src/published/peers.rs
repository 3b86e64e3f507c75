//! Drives that reviewers set beside the one that they reviewed.

use super::{FigureRow, figures};
use crate::Figure;

/// A drive in the document that a drive's own figures were published in.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// Name of the drive there.
    pub device: String,
    /// Document.
    pub document: String,
    /// Figures of the drive there, as a run keeps them.
    pub figures: Vec<Figure>,
}

/// The drives that stand beside a drive in the document that most of its figures, `own`, were
/// published in; in the order of the table, and none where that is not the project's own.
pub fn peers<'a>(own: impl IntoIterator<Item = &'a Figure>) -> Vec<Peer> {
    let row = |figure: &Figure| figures().iter().find(|row| row.id == figure.id);
    let rows: Vec<&FigureRow> = own.into_iter().filter_map(row).collect();
    let count = |document: &str| rows.iter().filter(|row| row.document == document).count();
    let Some(first) = rows.iter().rev().max_by_key(|row| count(&row.document)) else {
        return Vec::new();
    };
    let mut peers: Vec<Peer> = Vec::new();
    let beside = |row: &&FigureRow| row.document == first.document && row.device != first.device;
    for row in figures().iter().filter(beside) {
        let Some(figure) = row.figure() else { continue };
        match peers.iter_mut().find(|peer| peer.device == row.device) {
            Some(peer) => peer.figures.push(figure),
            None => peers.push(Peer {
                device: row.device.clone(),
                document: row.document.clone(),
                figures: vec![figure],
            }),
        }
    }
    peers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Step;
    use crate::example;

    fn published_of(device: &str) -> Vec<Figure> {
        let rows = figures().iter().filter(|row| row.device == device);
        rows.filter_map(FigureRow::figure).collect()
    }

    #[test]
    fn the_duo_stands_beside_the_drives_of_its_review() {
        let peers = peers(&published_of("Fusion-io ioDrive Duo MLC"));
        let names: Vec<&str> = peers.iter().map(|peer| peer.device.as_str()).collect();
        for name in ["LSI WarpDrive SLP-300", "OCZ Z-Drive R4"] {
            assert!(names.contains(&name), "{names:?}");
        }
        assert!(!names.contains(&"Fusion-io ioDrive Duo MLC"), "{names:?}");
        assert_eq!(super::peers(&[]), []);
    }

    #[test]
    fn a_figure_says_in_what_its_load_and_data_differ() {
        let step = example::run().steps.into_iter().find(Step::is_primary).unwrap();
        let of = |id: &str| {
            let row = figures().iter().find(|row| row.id == id).unwrap();
            row.figure().unwrap().apart_from(&step)
        };
        assert_eq!(of("A084"), [""; 0], "T16Q16 as the step");
        assert_eq!(of("E023"), ["64 threads", "2:1 compressible"]);
        assert_eq!(of("E021"), ["64 threads"]);
    }
}
