//! Whatever a host sends: no panic, and never more data than was asked for.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn any_spec() -> impl Strategy<Value = String> {
    let profile = prop::sample::select(profiles().into_iter().map(|p| p.name).collect::<Vec<_>>());
    let option = prop::sample::select(vec![
        "",
        ",fault=echo",
        ",fault=zero-success",
        ",fault=short",
        ",fault=swapped",
        ",fault=bad-checksum",
        ",power=sleep",
        ",sense=fixed",
        ",sense_cap=18",
        ",log_temperature=1",
        ",fault=torn-write",
        ",bad=0+5",
        ",capacity=35184372088832",
        ",payload=virtual",
    ]);
    (profile, option).prop_map(|(profile, option)| format!("{profile}{option}"))
}

/// Any bytes, and CDBs that are nearly right.
fn any_cdb() -> impl Strategy<Value = Vec<u8>> {
    let opcodes = vec![
        0x00u8, 0x03, 0x08, 0x0a, 0x12, 0x15, 0x1a, 0x1b, 0x23, 0x25, 0x28, 0x2a, 0x2f, 0x35, 0x42, 0x4d,
        0x55, 0x5a, 0x85, 0x88, 0x8a, 0x8f, 0x93, 0x9e, 0xa0, 0xa1, 0xa8, 0xaa,
    ];
    let commands = vec![
        0xecu8, 0xb0, 0x2f, 0x3f, 0x47, 0x57, 0x06, 0x20, 0x24, 0x25, 0x30, 0x35, 0x40, 0xca, 0xe0, 0xe2,
        0xe3, 0xe5, 0xe6, 0xef, 0xf8, 0x27, 0xf9, 0x37, 0x78, 0xc4, 0xc5, 0xc6, 0x29, 0x39, 0x3d, 0xce, 0x45,
        0xe4, 0xe8, 0x42,
    ];
    let pass_through = (
        vec((0u8..16, any::<bool>()), 1),
        any::<u8>(),
        vec(any::<u8>(), 16),
        prop::sample::select(commands),
        0xd0u8..0xdc,
    )
        .prop_map(|(protocol, flags, mut bytes, command, feature)| {
            let (protocol, extend) = protocol[0];
            bytes[0] = 0x85;
            bytes[1] = protocol << 1 | u8::from(extend);
            bytes[2] = flags;
            bytes[4] = feature;
            bytes[5] = 0;
            bytes[10] = 0x4f;
            bytes[12] = 0xc2;
            bytes[14] = command;
            bytes
        });
    prop_oneof![
        vec(any::<u8>(), 0..40),
        (prop::sample::select(opcodes), vec(any::<u8>(), 0..16)).prop_map(|(opcode, rest)| {
            let mut cdb = vec![opcode];
            cdb.extend(rest);
            cdb
        }),
        pass_through,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_panics_and_nothing_overruns(
        spec in any_spec(),
        commands in vec((any_cdb(), 0usize..1100, 0usize..5000, any::<bool>()), 1..12),
    ) {
        let mut target = open(&spec);
        for (cdb, out_len, in_len, out) in commands {
            let payload = vec![0x5a; if out { out_len } else { 0 }];
            let in_len = if out { 0 } else { in_len };
            let before = target.clock().now();
            match target.command(&cdb, &payload, in_len, Duration::from_secs(20)) {
                Reply::Answered { data, sense, elapsed, .. } => {
                    prop_assert!(data.len() <= in_len);
                    prop_assert!(sense.len() <= 252);
                    prop_assert!(elapsed <= Duration::from_secs(20));
                }
                Reply::TimedOut { elapsed } => prop_assert!(elapsed >= Duration::from_secs(20)),
                Reply::Gone => {}
            }
            prop_assert!(target.clock().now() > before);
        }
        let _ = target.facts();
    }

    #[test]
    fn any_text_is_a_target_or_a_reason(spec in "[ -~]{0,40}") {
        if let Err(error) = Target::open(&spec) {
            prop_assert!(!error.why.is_empty());
        }
    }
}
