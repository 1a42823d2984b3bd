//! Verdicts and what they rest on; drives that are slow to answer.

use super::*;
use drivethru::drive::health::{HealthReport, Verdict};

fn health(spec: &str) -> HealthReport {
    Dock::new(spec)
        .open(&OpenOptions::default(), Care::NoWake)
        .expect("a drive")
        .health(true)
        .expect("health")
}

fn reasons(report: &HealthReport, verdict: Verdict) -> Vec<&str> {
    let grave = report.reasons.iter().filter(|r| r.verdict == verdict);
    grave.map(|r| r.what.as_str()).collect()
}

#[test]
fn a_failing_drive_fails_for_both_reasons() {
    for profile in ATA_PROFILES {
        let report = health(&format!("{profile},health=failing"));
        assert_eq!(report.verdict, Verdict::Failing, "{profile}");
        assert_eq!(report.self_assessment_passed, Some(false), "{profile}");
        let grave = reasons(&report, Verdict::Failing);
        assert!(grave.len() >= 2, "{profile}: {grave:?}");
        assert!(grave[0].contains("SMART RETURN STATUS"), "{grave:?}");
        assert!(
            grave[1].starts_with("attribute 5 Reallocated_Sector_Ct"),
            "{grave:?}"
        );
    }
}

#[test]
fn a_worn_drive_warns_and_has_nothing_left() {
    for (profile, source) in [("ssd", "devstat"), ("mushkin-ventura-ultra-120gb", "devstat")] {
        let report = health(&format!("{profile},health=worn"));
        assert_eq!(report.verdict, Verdict::Warning, "{profile}");
        assert_eq!(report.self_assessment_passed, Some(true), "{profile}");
        let life = report.life.as_ref().expect("wear");
        assert_eq!((life.left_percent, life.source), (0, source), "{profile}");
        let what = reasons(&report, Verdict::Warning);
        assert!(what.iter().any(|w| w.contains("endurance")), "{what:?}");
    }
}

#[test]
fn a_good_drive_is_ok_without_reasons() {
    for profile in ATA_PROFILES {
        let report = health(profile);
        assert_eq!(report.verdict, Verdict::Ok, "{profile}");
        assert!(report.reasons.is_empty(), "{profile}: {:?}", report.reasons);
        assert_eq!(report.self_assessment_passed, Some(true), "{profile}");
        assert_eq!(report.not_read, Vec::<String>::new(), "{profile}");
    }
    assert_eq!(health("ssd").life.map(|l| l.left_percent), Some(94));
    assert_eq!(health("hdd").life, None, "platters do not wear");
}

/// No register ever comes back: CK_COND is ignored, and RETURN RESPONSE INFORMATION is refused.
fn without_registers(dock: &Dock) -> Drive {
    let refuse = |command: &Command, answer: Result<Completion, TransportError>| {
        let rri = Ata::of(command.cdb.as_bytes()).is_some_and(|a| a.protocol == 15);
        answer.map(|mut completion| {
            if rri {
                completion.status = drivethru::transport::Status::CHECK_CONDITION;
                completion.sense = vec![0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0, 0, 0, 0, 0];
                completion.data = Some(Vec::new());
            }
            completion
        })
    };
    let habit = Box::new(Habit::new(dock.plug(), refuse));
    Drive::from_transport(habit, dock.facts.clone(), &OpenOptions::default(), Care::MayWake).expect("a drive")
}

#[test]
fn without_registers_the_thresholds_decide() {
    for (state, verdict) in [
        ("good", Verdict::Ok),
        ("failing", Verdict::Failing),
        ("worn", Verdict::Warning),
    ] {
        let dock = Dock::new(&format!("ssd,ckcond=ignore,health={state}"));
        let report = without_registers(&dock).health(false).expect("health");
        assert_eq!(report.self_assessment_passed, None, "{state}");
        assert_eq!(report.verdict, verdict, "{state}: {:?}", report.reasons);
        assert!(
            report.not_read.iter().any(|n| n.contains("own verdict")),
            "{state}: {:?}",
            report.not_read
        );
        let json = serde_json::to_value(&report).expect("a document");
        assert!(json.get("self_assessment_passed").is_none(), "{state}: {json}");
    }
}

#[test]
fn registers_come_by_every_way_that_a_bridge_has() {
    for profile in ["ssd", "hdd"] {
        for habit in [
            "ckcond=ignore",
            "ckcond=empty",
            "ckcond=refuse",
            "sense=fixed",
            "sense_cap=18",
            "sense_cap=learn",
            "sat=12",
            "sat=16",
        ] {
            for (state, passed) in [("good", true), ("failing", false)] {
                let spec = format!("{profile},{habit},health={state}");
                let report = health(&spec);
                assert_eq!(report.self_assessment_passed, Some(passed), "{spec}");
            }
        }
    }
}

/// Only the first page of a READ LOG EXT for several is real.
fn first_page_only(
    command: &Command,
    answer: Result<Completion, TransportError>,
) -> Result<Completion, TransportError> {
    let read_log = Ata::of(command.cdb.as_bytes()).is_some_and(|a| a.command == 0x2f);
    answer.map(|mut completion| {
        if let Some(rest) = completion
            .data
            .as_mut()
            .filter(|_| read_log)
            .and_then(|d| d.get_mut(512..))
        {
            rest.fill(0);
        }
        completion
    })
}

#[test]
fn statistics_come_page_by_page_from_a_bridge_that_brings_only_the_first() {
    for profile in ["ssd", "hdd", "hdd-4kn"] {
        let whole = health(profile);
        let dock = Dock::new(profile);
        let habit = Box::new(Habit::new(dock.plug(), first_page_only));
        let mut drive =
            Drive::from_transport(habit, dock.facts.clone(), &OpenOptions::default(), Care::NoWake)
                .expect("a drive");
        let report = drive.health(true).expect("health");
        let statistics = |r: &HealthReport| r.logs.as_ref().expect("logs").statistics.clone();
        assert!(statistics(&report).is_some(), "{profile}");
        assert_eq!(statistics(&report), statistics(&whole), "{profile}");
        assert_eq!(report.life, whole.life, "{profile}");
        let pages: Vec<String> = dock
            .arrived()
            .into_iter()
            .filter(|w| w.starts_with("log 04h"))
            .collect();
        assert!(pages.len() > 2, "{profile}: {pages:?}");
        let singles = dock.sim();
        let counts: Vec<u16> = singles
            .target()
            .log()
            .iter()
            .filter_map(|e| Ata::of(&e.cdb))
            .filter(|a| a.command == 0x2f && a.lba[0] == 4)
            .map(|a| a.count)
            .collect();
        assert!(
            counts[0] > 1 && counts[1..].iter().all(|c| *c == 1),
            "{profile}: {counts:?}"
        );
    }
}

#[test]
fn a_drive_that_is_becoming_ready_is_waited_for() {
    for profile in ["ssd", "hdd", "asm1051-usb2", "hdd-4kn"] {
        for times in [1, 5, 15] {
            let spec = format!("{profile},becoming_ready={times}");
            let dock = Dock::new(&spec);
            let report = dock.poll();
            let report = report.unwrap_or_else(|e| panic!("{spec}: {e} {:?}", dock.arrived()));
            assert!(report.temperature.celsius.is_some(), "{spec}");
            assert_eq!(
                report.cost.commands,
                dock.arrived_count(),
                "{spec}: retries count"
            );
            let clock = dock.sim().target().clock();
            let waited = drivethru::time::Clock::now(&*clock);
            assert!(waited >= Duration::from_millis(400 * times), "{spec}: {waited:?}");
            assert!(waited < Duration::from_secs(20), "{spec}: {waited:?}");
        }
    }
}

#[test]
fn a_drive_that_never_becomes_ready_is_given_up() {
    let dock = Dock::new("ssd,becoming_ready=1000");
    let error = refusal(dock.poll());
    assert!(dock.arrived_count() <= 30, "{}", dock.arrived_count());
    let clock = dock.sim().target().clock();
    let waited = drivethru::time::Clock::now(&*clock);
    assert!(waited < Duration::from_secs(30), "{waited:?}");
    assert!(!error.to_string().is_empty());
    assert!(
        !matches!(error, DriveError::Harmed { .. }),
        "it answered: {error}"
    );
}

#[test]
fn a_unit_attention_costs_one_more_command() {
    for profile in ["ssd", "hdd", "asm1051-usb2"] {
        let plain = Dock::new(profile);
        plain.poll().expect("a temperature");
        let dock = Dock::new(&format!("{profile},unit_attention=1"));
        let report = dock.poll().expect("a temperature");
        assert_eq!(dock.arrived_count(), plain.arrived_count() + 1, "{profile}");
        assert_eq!(report.cost.commands, dock.arrived_count(), "{profile}");
        assert_eq!(dock.arrived()[0], dock.arrived()[1], "{profile}");
    }
}

#[test]
fn a_scsi_temperature_page_is_read_where_nothing_else_is() {
    let dock = Dock::new("ssd,sat=none,log_temperature=1,temp=44");
    let report = dock.poll().expect("a temperature");
    assert_eq!(report.temperature.celsius.map(|c| c.0), Some(44));
    assert_eq!(
        report.temperature.source,
        Some(drivethru::drive::temperature::Source::ScsiLog0d)
    );
    // Behind usb-storage the page is not asked for: old sticks hang on it.
    let dock = Dock::new("stick");
    refusal(dock.poll());
    assert!(!dock.arrived().contains(&"log sense".to_owned()));
}

/// One flipped byte in an attribute must not make anybody throw a drive away.
#[test]
fn a_garbled_attribute_is_no_failing_drive() {
    let dock = Dock::new("ssd");
    let flip = |command: &Command, answer: Result<Completion, TransportError>| match command.cdb.as_bytes() {
        // SMART READ DATA: the normalized value of attribute 5 falls to 1, and the checksum no longer fits.
        [0xa1, _, _, 0xd0, ..] => answer.map(|mut completion| {
            let data = completion.data.as_mut().expect("a sector");
            let slot = (0..30)
                .map(|i| 2 + 12 * i)
                .find(|at| data[*at] == 5)
                .expect("attribute 5");
            data[slot + 3] = 1;
            completion
        }),
        _ => answer,
    };
    let habit = Habit::new(dock.plug(), flip);
    let opened = Drive::from_transport(
        Box::new(habit),
        dock.facts.clone(),
        &OpenOptions::default(),
        Care::NoWake,
    );
    let report = opened.expect("a drive").health(false).expect("a document");
    assert_eq!(report.verdict, Verdict::Warning, "{:?}", report.reasons);
    assert!(
        report.reasons.iter().any(|r| r.what.contains("wrong checksum")),
        "{:?}",
        report.reasons
    );
    assert!(
        report.reasons.iter().any(|r| r.what.contains("attribute 5")),
        "{:?}",
        report.reasons
    );
    assert_eq!(report.self_assessment_passed, Some(true));
}
