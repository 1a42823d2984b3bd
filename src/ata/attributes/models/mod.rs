//! Attributes by drive family, where they differ from the generic rows; one file for each group of makers or controllers.
//!
//! Rows are facts with their evidence: "capture" is a sector of such a drive that was decoded by an independent tool
//! with the same result, "report" the printed output of one, "replay" a made-up sector under such a model name that
//! smartctl 7.3 prints the same, "field" the common knowledge of public tools.

mod disks;
mod indilinx;
mod industrial;
mod intel;
mod marvell;
mod micron;
mod phison;
mod samsung;
mod sandforce;
mod seagate;
mod silicon_motion;

use super::Meaning::Other;
use super::RawFormat::Raw48;
use super::{Definition, Meaning, Media, RawFormat, glob};

/// The attributes of one family.
struct Family {
    /// Model name patterns.
    models: &'static [&'static str],
    /// Firmware pattern.
    firmware: &'static str,
    rows: &'static [Definition],
}

const fn row(id: u8, name: &'static str, format: RawFormat, meaning: Meaning) -> Definition {
    Definition {
        id,
        name,
        format,
        meaning,
        media: Media::Any,
    }
}

/// A plain number that no other code acts on.
const fn count(id: u8, name: &'static str) -> Definition {
    row(id, name, Raw48, Other)
}

/// In the order in which they are asked: patterns that go by firmware rather than by model stand last in their file, and
/// those files stand behind the ones whose models they could take.
static GROUPS: &[&[Family]] = &[
    seagate::FAMILIES,
    disks::FAMILIES,
    samsung::FAMILIES,
    micron::FAMILIES,
    intel::FAMILIES,
    marvell::FAMILIES,
    sandforce::FAMILIES,
    indilinx::FAMILIES,
    industrial::FAMILIES,
    silicon_motion::FAMILIES,
    phison::FAMILIES,
];

/// Whether the first characters fit: most patterns begin with a maker's name and are out at once.
fn may_begin(pattern: &str, model: &str) -> bool {
    match pattern.as_bytes().first() {
        Some(b'*' | b'?' | b'[') | None => true,
        first => first == model.as_bytes().first(),
    }
}

/// The rows of the first family that matches; none for an unknown drive.
pub(super) fn rows(model: &str, firmware: &str) -> &'static [Definition] {
    GROUPS
        .iter()
        .flat_map(|group| group.iter())
        .find(|family| {
            family
                .models
                .iter()
                .any(|pattern| may_begin(pattern, model) && glob::matches(pattern, model))
                && glob::matches(family.firmware, firmware)
        })
        .map_or(&[], |family| family.rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_family_have_each_number_once() {
        for family in GROUPS.iter().flat_map(|group| group.iter()) {
            assert!(
                family.rows.is_sorted_by(|a, b| a.id < b.id),
                "{:?}",
                family.models
            );
        }
    }
}
