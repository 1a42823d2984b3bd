//! What the workloads do.

use super::*;

fn planned(workload: Workload) -> Plan {
    let options = Options {
        workload,
        ..Options::default()
    };
    plan(&options, 120_000_000_000).unwrap()
}

#[test]
fn names_lead_to_workloads_and_contents_and_back() {
    for (name, workload, _) in WORKLOADS {
        assert_eq!(name.parse::<Workload>().as_ref(), Ok(workload));
        assert_eq!(workload.word(), *name);
    }
    assert!("atto".parse::<Workload>().unwrap_err().contains("cdm3"));
    for word in ["random", "random-once", "zero", "mix:50", "dedupe:7"] {
        assert_eq!(word.parse::<Content>().unwrap().to_string(), word);
    }
    for word in ["mix", "mix:101", "mix:x", "ones", "zero:1"] {
        assert!(word.parse::<Content>().is_err(), "{word}");
    }
}

#[test]
fn the_suite_moves_what_the_review_moved() {
    let plan = planned(Workload::Das);
    let moved = |op| -> u64 {
        let sizes = plan.stages.iter().filter(|s| s.op == op);
        sizes
            .map(|s| match &s.pattern {
                Pattern::Files(files) => files.iter().map(|f| f.bytes).sum::<u64>(),
                _ => 0,
            })
            .sum()
    };
    assert_eq!(moved(Op::Write), 127_200_000_000);
    assert_eq!(moved(Op::Read), 127_200_000_000);
    let gaps: Vec<Duration> = plan
        .stages
        .iter()
        .filter(|s| s.op == Op::Idle)
        .filter_map(|s| s.time)
        .collect();
    assert_eq!(gaps, [Duration::from_secs(40), Duration::from_secs(27)]);
    assert_eq!(plan.stages.len(), 20);
    let options = Options {
        workload: Workload::Das,
        no_gap: true,
        ..Options::default()
    };
    let no_gap = super::plan(&options, 120_000_000_000).unwrap();
    assert_eq!(no_gap.stages.len(), 18);
    assert!(
        super::plan(&options, 8_000_000_000)
            .unwrap_err()
            .contains("needs 16 GB")
    );
}

#[test]
fn sequential_amounts_are_whole_blocks_of_the_medium() {
    let mut options = Options {
        workload: Workload::SeqConsistency,
        ..Options::default()
    };
    let stage = |options: &Options| plan(options, 1_000_000_000_000).map(|p| p.stages);
    let bytes = stage(&options).unwrap().first().and_then(|s| s.bytes).unwrap();
    assert!(bytes.is_multiple_of(131_072) && bytes.abs_diff(900_000_000_000) < 131_072);
    options.workload = Workload::Seq;
    assert_eq!(
        stage(&options).unwrap().first().and_then(|s| s.time),
        Some(Duration::from_secs(60))
    );
    for amount in [
        Amount::FillPercent(0.0),
        Amount::FillPercent(101.0),
        Amount::FillPercent(f64::NAN),
        Amount::Bytes(0),
    ] {
        options.amount = Some(amount);
        assert!(stage(&options).is_err(), "{amount:?}");
    }
    options.workload = Workload::Mix;
    options.amount = Some(Amount::Bytes(1));
    assert!(stage(&options).unwrap_err().contains("its own length"));
}

#[test]
fn a_medium_smaller_than_a_block_has_no_plan() {
    let options = Options::default();
    assert!(plan(&options, 131_072).is_ok());
    for capacity_bytes in [0, 255 * 512] {
        assert!(
            plan(&options, capacity_bytes)
                .unwrap_err()
                .contains("at least 131072")
        );
    }
}

#[test]
fn rows_have_their_runs() {
    let cdm3 = planned(Workload::Cdm3);
    assert_eq!(cdm3.stages.len(), 72);
    let mut figures: Vec<String> = cdm3
        .stages
        .iter()
        .filter_map(|s| Some(s.row.as_ref()?.figure.clone()))
        .collect();
    figures.dedup();
    assert_eq!(
        figures,
        [
            "seq_read",
            "seq_write",
            "rnd_read_512k",
            "rnd_write_512k",
            "rnd_read_4k_qd1",
            "rnd_write_4k_qd1",
            "rnd_read_4k_qd32",
            "rnd_write_4k_qd32"
        ]
    );
    let nvme = planned(Workload::Cdm8Nvme);
    let scored = |s: &&Stage| s.row.is_some() && s.unscored == Duration::ZERO;
    assert_eq!(nvme.stages.iter().filter(scored).count(), 40);
    assert!(nvme.stages.iter().any(|s| s.depth == 512));
    let mix = planned(Workload::Mix);
    let depths: Vec<u32> = mix.stages.iter().map(|s| s.depth).collect();
    assert_eq!(depths, [1, 4, 15, 32, 60]);
}
