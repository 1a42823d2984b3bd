//! `trim` for people.

use super::{Style, Tone, device_line};
use crate::drive::trim::{Ending, Proof, TrimReport};
use crate::text;
use crate::units::human_bytes;

/// Ranges that are shown; the JSON document has all.
const SHOWN_RANGES: usize = 4;
/// Things left alone that are shown.
const SHOWN_LEFT: usize = 12;

/// One account, several lines.
pub fn render(report: &TrimReport, style: Style) -> String {
    let mut out = format!("{}\n", device_line(&report.device));
    let mut row = |key: &str, value: &str| {
        out.push_str(&format!("  {key:<11} {}\n", text::for_terminal(value)));
    };
    if report.target.name != report.device.name {
        row(
            "target",
            &format!("{} {}", report.target.kind, report.target.name),
        );
    }
    for volume in &report.volumes {
        let place = volume
            .partition
            .map_or("all of it".to_owned(), |n| format!("partition {n}"));
        let free = match volume.free_bytes {
            Some(free) => format!(
                "{} free; {} files and directories checked against the map",
                human_bytes(free),
                volume.owners_checked.unwrap_or_default()
            ),
            None if report.what == "free" => "left alone".to_owned(),
            None => "what is in the ranges is lost".to_owned(),
        };
        row(
            "volume",
            &format!("{place}: {}, {}, {free}", volume.what, human_bytes(volume.bytes)),
        );
    }
    let plan = &report.plan;
    if report.target.kind == "mount" {
        row("plan", "the file system trims its own free space (FITRIM)");
    } else {
        let ranges: Vec<String> = plan
            .extents
            .iter()
            .take(SHOWN_RANGES)
            .map(|(first, count)| format!("{first}+{count}"))
            .collect();
        let more = plan.extents.len().saturating_sub(SHOWN_RANGES);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        row(
            "plan",
            &format!(
                "{} in {} ranges of {}-byte blocks: {}{more}",
                human_bytes(plan.bytes),
                plan.extents.len(),
                report.target.block_bytes,
                ranges.join(" ")
            ),
        );
    }
    if let Some(method) = report.method {
        let cost = if plan.commands > 0 {
            format!(
                ": {} commands, about {:.1} s",
                plan.commands, plan.estimated_seconds
            )
        } else {
            String::new()
        };
        let first = if report.commit { "" } else { " first" };
        row("way", &format!("{}{first}{cost}", method.word()));
    }
    for refused in &report.refused {
        row("not by", &format!("{}: {}", refused.method.word(), refused.why));
    }
    for left in report.left_alone.iter().take(SHOWN_LEFT) {
        row("left alone", &format!("{}: {}", left.what, left.why));
    }
    if let Some(more) = report.left_alone.len().checked_sub(SHOWN_LEFT).filter(|n| *n > 0) {
        row("left alone", &format!("{more} more; --json lists them"));
    }
    for proof in report.failed_proofs.iter().chain(&report.proof) {
        row("proof", &proof_line(proof));
    }
    if let Some((first, count)) = report.stamp_left {
        row(
            "left over",
            &format!(
                "the stamp of a failed proof stands in blocks {first}+{count} of the disk, which were free"
            ),
        );
    }
    if let Some(done) = &report.done {
        row(
            "done",
            &format!(
                "{} in {} commands, {:.2} s",
                human_bytes(done.bytes),
                done.commands,
                done.elapsed_seconds
            ),
        );
    }
    if let Some(verified) = &report.verified {
        row(
            "verified",
            &format!(
                "{} of {} samples read as proven, {} neighbours compared{}",
                verified.as_proven,
                verified.samples,
                verified.neighbours,
                if verified.cannot_tell > 0 {
                    format!(
                        "; of {} nobody can tell, since no zeroes are promised",
                        verified.cannot_tell
                    )
                } else {
                    String::new()
                }
            ),
        );
        for wrong in &verified.wrong {
            row("wrong", wrong);
        }
    }
    out.push_str(&ending(report, style));
    out
}

fn proof_line(proof: &Proof) -> String {
    let asked = if proof.same_lba_by_ata {
        "; the drive itself shows the same block at the same LBA"
    } else {
        ""
    };
    format!(
        "{} on blocks {}+{}: {}{asked}",
        proof.method.word(),
        proof.discarded.0,
        proof.discarded.1,
        proof.words
    )
}

fn ending(report: &TrimReport, style: Style) -> String {
    let (tone, words) = match &report.ending {
        Ending::Planned => (Tone::Good, "dry run: nothing was written".to_owned()),
        Ending::Done if report.target.kind == "mount" => (
            Tone::Good,
            "done, as the file system says; not proven on the drive".to_owned(),
        ),
        Ending::Done => (Tone::Good, "done".to_owned()),
        Ending::NothingToDo => (Tone::Warn, "nothing to trim".to_owned()),
        Ending::NoMethod => (
            Tone::Bad,
            "no way to trim it works here; nothing was trimmed".to_owned(),
        ),
        Ending::NotProven => (
            Tone::Bad,
            "not trimmed: no way is proven to do what it claims".to_owned(),
        ),
        Ending::VerifyFailed => (
            Tone::Bad,
            "trimmed, but the verification found it wrong".to_owned(),
        ),
        Ending::Stopped { why } => (Tone::Bad, format!("stopped: {why}")),
        Ending::Interrupted => (Tone::Warn, "interrupted: what is left is as it was".to_owned()),
    };
    format!("{}\n", style.paint(tone, &text::for_terminal(&words)))
}
