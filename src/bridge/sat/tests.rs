//! Every byte that goes out, and what each answer means.

use super::*;
use crate::bridge::{BridgeError, run};
use crate::transport::layer::replay::Replay;
use crate::transport::layer::xchg;

fn taskfile(registers: [u8; 7], protocol: Protocol, transfer_sectors: u16) -> Taskfile {
    let [feature, count, low, mid, high, device, command] = registers;
    Taskfile {
        feature: u16::from(feature),
        count: u16::from(count),
        lba: u64::from(low) | u64::from(mid) << 8 | u64::from(high) << 16,
        device,
        command,
        extend: false,
        protocol,
        transfer_sectors,
    }
}

fn identify() -> Taskfile {
    taskfile([0, 1, 0, 0, 0, 0, 0xec], Protocol::PioIn, 1)
}

fn return_status() -> Taskfile {
    taskfile([0xda, 0, 0, 0x4f, 0xc2, 0, 0xb0], Protocol::NonData, 0)
}

fn hex(cdb: Option<Cdb>) -> String {
    cdb.map(|c| c.to_string().to_uppercase()).unwrap_or_default()
}

/// The CDBs as they are known from the wire of other tools and from the standard's tables.
#[test]
fn cdbs_are_the_golden_ones() {
    let (twelve, sixteen, count) = (Form::Twelve, Form::Sixteen, LengthSource::Count);
    assert_eq!(
        hex(build_cdb(&identify(), twelve, count, false)),
        "A1 08 0E 00 01 00 00 00 00 EC 00 00"
    );
    assert_eq!(
        hex(build_cdb(&identify(), twelve, LengthSource::Transport, false)),
        "A1 08 0F 00 01 00 00 00 00 EC 00 00"
    );
    assert_eq!(
        hex(build_cdb(&identify(), sixteen, count, false)),
        "85 08 0E 00 00 00 01 00 00 00 00 00 00 00 EC 00"
    );
    assert_eq!(
        hex(build_cdb(&return_status(), sixteen, count, true)),
        "85 06 20 00 DA 00 00 00 00 00 4F 00 C2 00 B0 00"
    );
    let write_log = taskfile([0xd6, 1, 0xe0, 0x4f, 0xc2, 0, 0xb0], Protocol::PioOut, 1);
    assert_eq!(
        hex(build_cdb(&write_log, twelve, count, false)),
        "A1 0A 06 D6 01 E0 4F C2 00 B0 00 00"
    );
    let set_max = Taskfile {
        lba: 0x0012_3456_789a,
        extend: true,
        ..taskfile([0, 0, 0, 0, 0, 0x40, 0x37], Protocol::NonData, 0)
    };
    assert_eq!(
        build_cdb(&set_max, twelve, count, true),
        None,
        "48 bits do not fit"
    );
    for form in [Form::Auto, sixteen] {
        assert_eq!(
            hex(build_cdb(&set_max, form, count, true)),
            "85 07 20 00 00 00 00 34 9A 12 78 00 56 40 37 00"
        );
    }
    let too_wide = Taskfile {
        feature: 0x100,
        ..identify()
    };
    assert_eq!(build_cdb(&too_wide, twelve, count, false), None);
}

fn play(script: &str, dialect: &Sat, request: Request) -> (Result<Reply, BridgeError>, usize) {
    let mut replay = Replay::new("test".to_owned(), xchg::parse(script).expect("script"));
    let result = run(&mut replay, dialect, request);
    (result, replay.remaining().len())
}

fn status_request() -> Request {
    Request::new("SMART RETURN STATUS", return_status(), Duration::from_secs(5)).with_registers()
}

fn sat(form: Form) -> Sat {
    Sat::new(form, LengthSource::Count, RegisterSource::CkCondThenRri)
}

const STATUS_12: &str = "> cdb a1 06 20 da 00 00 4f c2 00 b0 00 00\n";
const RRI_12: &str = "> cdb a1 1e 0b 00 00 00 00 00 00 00 00 00\n> in 14\n";

#[test]
fn success_in_sense_data_is_success() {
    let script = format!(
        "{STATUS_12}< status 02\n< sense 72 01 00 1d 00 00 00 0e 09 0c 00 00 00 00 00 00 00 4f 00 c2 00 50\n"
    );
    let (reply, left) = play(&script, &sat(Form::Twelve), status_request());
    let registers = reply.expect("registers").registers;
    assert_eq!(
        (registers.lba_mid, registers.lba_high, registers.status),
        (Some(0x4f), Some(0xc2), Some(0x50))
    );
    assert_eq!(left, 0);
}

#[test]
fn success_under_a_bad_key_is_success_too() {
    let script = format!(
        "{STATUS_12}< status 02\n< sense 72 0b 00 00 00 00 00 0e 09 0c 00 00 00 00 00 00 00 f4 00 2c 00 50\n"
    );
    let (reply, _) = play(&script, &sat(Form::Twelve), status_request());
    assert_eq!(reply.expect("registers").registers.lba_mid, Some(0xf4));
}

#[test]
fn empty_registers_are_asked_for_once() {
    let empty =
        format!("{STATUS_12}< status 02\n< sense 70 00 01 00 00 00 00 0a 00 00 00 00 00 1d 00 00 00 00\n");
    let answered = format!("{empty}{RRI_12}< status 00\n< in 09 0c 00 00 00 00 00 00 00 4f 00 c2 00 50\n");
    let (reply, left) = play(&answered, &sat(Form::Twelve), status_request());
    assert_eq!(reply.expect("registers").registers.lba_high, Some(0xc2));
    assert_eq!(left, 0);

    const NO: &str = "< status 02\n< sense 70 00 05 00 00 00 00 0a 00 00 00 00 24 00 00 00 00 00\n";
    const RRI_12_PLAIN: &str = "> cdb a1 1e 03 00 00 00 00 00 00 00 00 00\n> in 14\n";
    let second_form = format!(
        "{empty}{RRI_12}{NO}{RRI_12_PLAIN}< status 00\n< in 09 0c 00 00 00 00 00 00 00 4f 00 c2 00 50\n"
    );
    let (reply, left) = play(&second_form, &sat(Form::Twelve), status_request());
    assert_eq!(reply.expect("registers").registers.lba_high, Some(0xc2));
    assert_eq!(left, 0);

    let refused = format!("{empty}{RRI_12}{NO}{RRI_12_PLAIN}{NO}");
    let dialect = sat(Form::Twelve);
    let (reply, left) = play(&refused, &dialect, status_request());
    assert_eq!(
        reply.expect("no registers, no error").registers,
        Registers::default()
    );
    assert_eq!(left, 0);
    let (_, left) = play(&empty, &dialect, status_request());
    assert_eq!(left, 0, "the second time nobody asks again");
}

/// The registers that RETURN RESPONSE INFORMATION brings may be those of a command that the drive aborted.
#[test]
fn an_aborted_command_is_no_passed_one() {
    let aborted = format!(
        "{STATUS_12}< status 00\n{RRI_12}< status 00\n< in 09 0c 00 04 00 00 00 00 00 4f 00 c2 00 51\n"
    );
    let (reply, _) = play(&aborted, &sat(Form::Twelve), status_request());
    let error = reply.expect_err("the drive aborted it");
    assert_eq!(
        error.failure(),
        Some(&Failure::Aborted {
            status: 0x51,
            error: 0x04
        })
    );
}

#[test]
fn a_bridge_that_refuses_ck_cond_is_asked_without_it() {
    let refused =
        format!("{STATUS_12}< status 02\n< sense 70 00 05 00 00 00 00 0a 00 00 00 00 24 00 00 00 00 00\n");
    let plain = "> cdb a1 06 00 da 00 00 4f c2 00 b0 00 00\n< status 00\n";
    let script =
        format!("{refused}{plain}{RRI_12}< status 00\n< in 09 0c 00 00 00 00 00 00 00 4f 00 c2 00 50\n");
    let (reply, left) = play(&script, &sat(Form::Twelve), status_request());
    assert_eq!(reply.expect("registers").registers.lba_high, Some(0xc2));
    assert_eq!(left, 0);
}

#[test]
fn a_refused_ck_cond_is_not_tried_again() {
    let dialect = sat(Form::Twelve);
    dialect.learned.ck_cond_refused.store(true, Ordering::Relaxed);
    let plain = "> cdb a1 06 00 da 00 00 4f c2 00 b0 00 00\n< status 00\n";
    let script = format!("{plain}{RRI_12}< status 00\n< in 09 0c 00 00 00 00 00 00 00 4f 00 c2 00 50\n");
    let (reply, left) = play(&script, &dialect, status_request());
    assert_eq!(reply.expect("registers").registers.lba_mid, Some(0x4f));
    assert_eq!(left, 0);
}

#[test]
fn a_length_in_the_transport_may_be_for_identify_only() {
    let dialect = Sat::new(Form::Twelve, LengthSource::Transport, RegisterSource::CkCond);
    let read_data = || {
        let taskfile = taskfile([0xd0, 1, 0, 0x4f, 0xc2, 0, 0xb0], Protocol::PioIn, 1);
        Request::new("SMART READ DATA", taskfile, Duration::from_secs(5))
    };
    let refused = "< status 02\n< sense 70 00 05 00 00 00 00 0a 00 00 00 00 24 00 00 00 00 00\n";
    let data = format!("< status 00\n< in {}\n", "01 ".repeat(512).trim_end());
    let transport = "> cdb a1 08 0f d0 01 00 4f c2 00 b0 00 00\n> in 512\n";
    let count = "> cdb a1 08 0e d0 01 00 4f c2 00 b0 00 00\n> in 512\n";
    // Refused in both forms: nothing is learned.
    let script = format!("{transport}{refused}{count}{refused}");
    let (reply, left) = play(&script, &dialect, read_data());
    assert!(matches!(
        reply.unwrap_err().failure(),
        Some(Failure::FieldRefused { .. })
    ));
    assert_eq!(left, 0);
    let (reply, left) = play(
        &format!("{transport}{refused}{count}{data}"),
        &dialect,
        read_data(),
    );
    assert_eq!((reply.expect("data").data.map(|d| d.len()), left), (Some(512), 0));
    // From then on at once; IDENTIFY DEVICE stays as it was.
    let (reply, left) = play(&format!("{count}{data}"), &dialect, read_data());
    assert!(reply.is_ok() && left == 0);
    let script = format!("> cdb a1 08 0f 00 01 00 00 00 00 ec 00 00\n> in 512\n{data}");
    let identify = Request::new("IDENTIFY DEVICE", identify(), Duration::from_secs(5));
    let (reply, left) = play(&script, &dialect, identify);
    assert!(reply.is_ok() && left == 0);
}

#[test]
fn a_bridge_that_ignores_ck_cond_gives_unknown_registers() {
    let dialect = Sat::new(Form::Twelve, LengthSource::Count, RegisterSource::CkCond);
    let (reply, _) = play(&format!("{STATUS_12}< status 00\n"), &dialect, status_request());
    assert_eq!(reply.expect("good status").registers, Registers::default());
}

#[test]
fn failures_keep_their_kind() {
    let head = "> cdb a1 08 0e 00 01 00 00 00 00 ec 00 00\n> in 512\n";
    let request = || Request::new("IDENTIFY DEVICE", identify(), Duration::from_secs(5));
    let fixed = |key: u8, asc: u8, ascq: u8| {
        format!(
            "{head}< status 02\n< sense 70 00 {key:02x} 00 00 00 00 0a 00 00 00 00 {asc:02x} {ascq:02x} 00 00 00 00\n"
        )
    };
    let failure = |script: &str| {
        let (result, _) = play(script, &sat(Form::Twelve), request());
        result
            .expect_err("a failure")
            .failure()
            .expect("answered")
            .clone()
    };
    assert!(matches!(
        failure(&fixed(5, 0x20, 0)),
        Failure::CannotCarry { sense: Some(_) }
    ));
    assert!(matches!(
        failure(&fixed(5, 0x24, 0)),
        Failure::FieldRefused { .. }
    ));
    assert!(matches!(failure(&fixed(2, 0x3a, 0)), Failure::NotReady { .. }));
    assert!(matches!(
        failure(&fixed(3, 0x11, 0)),
        Failure::CheckCondition { sense: Some(_) }
    ));
    assert!(matches!(
        failure(&format!("{head}< status 02\n")),
        Failure::CheckCondition { sense: None }
    ));
    assert!(matches!(
        failure(&format!("{head}< status 08\n")),
        Failure::Status { status: 8 }
    ));
    assert!(matches!(
        failure(&format!("{head}< status 00\n< in 00 01\n")),
        Failure::ShortData {
            got_bytes: 2,
            want_bytes: 512
        }
    ));
    // The drive's own abort, in the fixed layout of older kernels' SATA layer.
    let old_libata =
        format!("{head}< status 02\n< sense 70 00 05 00 00 00 00 0a 04 51 40 01 21 04 00 00 00 00\n");
    assert_eq!(
        failure(&old_libata),
        Failure::Aborted {
            status: 0x51,
            error: 0x04
        }
    );
}

#[test]
fn attention_is_retried_once_and_becoming_ready_with_patience() {
    let head = "> cdb a1 08 0e 00 01 00 00 00 00 ec 00 00\n> in 512\n";
    let attention = "< status 02\n< sense 70 00 06 00 00 00 00 0a 00 00 00 00 29 00 00 00 00 00\n";
    let becoming = "< status 02\n< sense 70 00 02 00 00 00 00 0a 00 00 00 00 04 01 00 00 00 00\n";
    let data: String = (0..16)
        .map(|_| format!("< in {}\n", "11 ".repeat(32).trim()))
        .collect();
    let script = format!("{head}{attention}{head}{becoming}{head}< status 00\n{data}");
    let request = Request::new("IDENTIFY DEVICE", identify(), Duration::from_secs(5));
    let (reply, left) = play(&script, &sat(Form::Twelve), request);
    assert_eq!(reply.expect("data").data.map(|d| d.len()), Some(512));
    assert_eq!(left, 0);
}
