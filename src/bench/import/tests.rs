use super::*;
use crate::bench::series::Op;

fn ok(text: &str) -> Imported {
    read(text.as_bytes()).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn fails(bytes: &[u8]) -> String {
    read(bytes).expect_err("an error").to_string()
}

fn rates(imported: &Imported) -> Vec<f64> {
    imported
        .series
        .samples
        .iter()
        .map(|s| (s.mb_s * 1000.0).round() / 1000.0)
        .collect()
}

fn times(imported: &Imported) -> Vec<f64> {
    imported.series.samples.iter().map(|s| s.t_s).collect()
}

#[test]
fn our_own_columns() {
    let read = ok("t_s,mb_s,cumulative_bytes,temp_c,op,temp_age_s,smart_ms\n\
                   1.000,107.0,107000000,31,write,,2\n2.000,0,107000000,,idle,1,\n");
    assert_eq!(read.notes, [""; 0]);
    assert_eq!(rates(&read), [107.0, 0.0]);
    let last = read.series.samples.last().expect("two");
    assert_eq!(
        (last.op, last.temp_c, last.cumulative_bytes),
        (Op::Idle, None, 107_000_000)
    );
    assert_eq!(read.series.samples.first().expect("two").smart_ms, Some(2.0));
}

#[test]
fn wall_time_and_units_in_the_header() {
    let read = ok("Timestamp,Write (MiB/s),Temp [°F]\n\
                   2026-01-01T10:00:00Z,100,104\n2026-01-01T10:00:02Z,50,\n2026-01-01T10:00:04Z,50,\n");
    assert_eq!(times(&read), [2.0, 4.0, 6.0]);
    assert_eq!(rates(&read), [104.858, 52.429, 52.429]);
    assert_eq!(read.series.samples.first().and_then(|s| s.temp_c), Some(40.0));
    assert!(read.epoch_s.is_some());
    let bytes = read.series.samples.last().map(|s| s.cumulative_bytes);
    assert_eq!(bytes, Some(419_430_400));
}

#[test]
fn decimal_commas_and_semicolons() {
    let read = ok("Zeit time;MB/s;Temperature\n1;100,5;41\n2;99,5;41\n");
    assert_eq!(rates(&read), [100.5, 99.5]);
}

#[test]
fn the_decimal_mark_is_what_the_cells_show() {
    let says = |read: &Imported, what: &str| read.notes.iter().any(|n| n.contains(what));
    let read = ok("t_s\tmb_s\top\n1.5\t100.25\twrite\n2.5\t1000\twrite\n");
    assert_eq!(
        (rates(&read), times(&read)),
        (vec![100.25, 1000.0], vec![1.5, 2.5])
    );
    assert!(
        says(&read, "line 2: \"1.5\": the decimal mark is a point"),
        "{:?}",
        read.notes
    );
    let read = ok("t_s;mb_s;op\n1;100;write\n2;100.25;write\n3;1,100.25;write\n");
    assert_eq!(rates(&read), [100.0, 100.25, 1100.25]);
    // Three digits behind a point are a fraction where nothing else is told.
    assert_eq!(
        rates(&ok("t_s;mb_s;op\n1.000;99.125;write\n2.000;98.250;write\n")),
        [99.125, 98.25]
    );
    let read = ok("t_s;mb_s;op\n1;100;write\n2;99,5;write\n");
    assert_eq!(rates(&read), [100.0, 99.5]);
    assert!(says(&read, "line 3: \"99,5\": the decimal mark is a comma"));
    let read = ok("t_s;mb_s;op\n1,5;1.234,5;write\n2,5;12.345,25 MB/s;write\n");
    assert_eq!(rates(&read), [1234.5, 12345.25]);
    assert_eq!(rates(&ok("t_s\tmb_s\top\n1\t99,5\twrite\n")), [99.5]);
    // Both marks in one file: one of them would be read wrong by a thousand.
    assert!(fails(b"t_s;mb_s;op\n1;99,5;write\n2;1.234;write\n").contains("line 3: mb_s: cannot read"));
    assert!(fails(b"t_s;mb_s;op\n1;99.5;write\n2;1,234;write\n").contains("line 3: mb_s: cannot read"));
}

#[test]
fn milliseconds_epochs_and_missing_clocks() {
    let read = ok("time,MB/s\n1000,5\n2000,6\n3000,7\n");
    assert_eq!(times(&read), [1.0, 2.0, 3.0]);
    assert!(
        read.notes.iter().any(|n| n.contains("milliseconds")),
        "{:?}",
        read.notes
    );
    let read = ok("time,MB/s\n1700000000,5\n1700000001,6\n");
    assert_eq!(times(&read), [1.0, 2.0]);
    let read = ok("MB/s\n5\n6\n");
    assert_eq!(times(&read), [1.0, 2.0]);
    assert!(read.notes.iter().any(|n| n.contains("one row a second")));
    let read = ok("time,MB/s\n00:00:01,5\n00:01:02,6\n");
    assert_eq!(times(&read), [1.0, 62.0]);
}

#[test]
fn cells_with_their_own_units() {
    let read = ok("t_s,speed\n1,1.5 GB/s\n2,900 MB/s\n3,900\n");
    assert_eq!(rates(&read), [1500.0, 900.0, 900.0]);
    assert!(read.notes.iter().any(|n| n.contains("no unit")));
    assert!(fails(b"t_s,speed\n1,5 furlongs\n").contains("line 2: speed"));
}

#[test]
fn rates_from_a_counter() {
    let read = ok("t_s,total_bytes\n1,100000000\n2,300000000\n3,400000000\n");
    assert_eq!(rates(&read), [200.0, 100.0]);
}

#[test]
fn two_columns_of_rates() {
    let read = ok("t_s,read_mb_s,write_mb_s\n1,0,100\n2,150,10\n3,0,0\n");
    assert_eq!(rates(&read), [100.0, 160.0, 0.0]);
    let ops: Vec<Op> = read.series.samples.iter().map(|s| s.op).collect();
    assert_eq!(ops, [Op::Write, Op::Read, Op::Read]);
}

#[test]
fn logs_of_fio() {
    let read = ok("1000, 616448, 1, 0, 0\n2000, 430510, 1, 0, 0\n");
    assert_eq!((read.format, rates(&read)), (Format::Fio, vec![631.243, 440.842]));
    // Two directions at once, with a column of priorities.
    let read = ok(
        "1000, 1000, 0, 0, 0, 0x0000\n1001, 3000, 1, 0, 0, 0x0000\n2000, 2000, 0, 0, 0, 0x0000\n2001, 1000, 1, 0, 0, 0x0000\n",
    );
    assert_eq!(rates(&read), [4.096, 3.072]);
    let ops: Vec<Op> = read.series.samples.iter().map(|s| s.op).collect();
    assert_eq!(ops, [Op::Write, Op::Read]);
    // One direction after the other.
    let read = ok("1000, 1000, 1, 0, 0\n2000, 1000, 1, 0, 0\n3000, 2000, 0, 0, 0\n4000, 2000, 0, 0, 0\n");
    assert_eq!(read.series.samples.len(), 4);
    // Two jobs behind each other.
    let read = ok("1000, 1000, 1, 0, 0\n2000, 1000, 1, 0, 0\n1001, 500, 1, 0, 0\n2001, 500, 1, 0, 0\n");
    assert_eq!(rates(&read), [1.536, 1.536]);
    // Each request.
    let each: String = (0..400)
        .map(|i| format!("{}, 99999, 1, 131072, {}\n", i * 10, i))
        .collect();
    let read = ok(&each);
    assert_eq!(rates(&read), [13.107; 4]);
    assert!(fails(b"1000, 5, 1, 0, 0\nabc\n2000, 5, 1, 0, 0\n").contains("line 2"));
}

#[test]
fn stops_in_logs_of_fio_are_zeros() {
    use crate::bench::detect::analyze;
    use crate::bench::verdict::Cause;
    let stopped = |s: u32| (60..75).contains(&s);
    let mut table = String::from("t_s,mb_s,op\n");
    let (mut each, mut averaged) = (String::new(), String::new());
    for s in 0..180 {
        let mb_s = if stopped(s) { 0.0 } else { 131.072 };
        table.push_str(&format!("{},{mb_s},write\n", s + 1));
        if stopped(s) {
            continue;
        }
        // A row is late by a few ms, as they are.
        averaged.push_str(&format!("{}, 128000, 1, 0, 0\n", (s + 1) * 1000 + s % 7));
        for request in 0..50 {
            each.push_str(&format!("{}, 131072, 1, 2621440, 0\n", s * 1000 + request * 20));
        }
    }
    let table = analyze(&ok(&table).series);
    assert_eq!(table.cause, Cause::Link);
    for log in [each, averaged] {
        let read = ok(&log);
        let zeros = rates(&read).iter().filter(|r| **r == 0.0).count();
        assert_eq!((zeros, read.series.samples.len()), (15, 180));
        assert!(times(&read).is_sorted());
        let note = "15 s without rows at 60 s";
        assert!(read.notes.iter().any(|n| n.contains(note)), "{:?}", read.notes);
        let verdict = analyze(&read.series);
        assert_eq!(verdict.cause, table.cause);
        let kinds = |v: &crate::bench::verdict::Verdict| {
            v.events
                .iter()
                .map(|e| (e.cause, e.kind.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(kinds(&verdict), kinds(&table));
    }
    // Between a workload and the next nobody asked for anything.
    let line = |s: u32, op: u32| format!("{}, 128000, {op}, 0, 0\n", s * 1000);
    let two: String = (1..=60)
        .map(|s| line(s, 1))
        .chain((80..140).map(|s| line(s, 0)))
        .collect();
    assert_eq!(ok(&two).series.samples.len(), 120);
    // Nor is a log without a beat filled, nor a single row that is missing.
    let odd: String = (1..=40).map(|s| line(s * s, 1)).collect();
    assert_eq!(ok(&odd).series.samples.len(), 40);
    let one: String = (1..=40).filter(|s| *s != 20).map(|s| line(s, 1)).collect();
    assert_eq!(ok(&one).series.samples.len(), 39);
    // Days between two rows are no reason to write each second.
    let far: String = (0..400)
        .map(|i| format!("{}, 9, 1, 131072, 0\n", i * 10))
        .collect();
    assert_eq!(
        ok(&(far + "900000000, 9, 1, 131072, 0\n")).series.samples.len(),
        5
    );
}

#[test]
fn runs_of_ours() {
    let read = ok(
        r#"{"schema":"drivethru-bench/1","samples":[{"t_s":1.0,"mb_s":5.0,"cumulative_bytes":5,"op":"write"}],
                      "context":{"link_mb_s":440.0},"verdict":{"anything":1}}"#,
    );
    assert_eq!(read.format, Format::Run);
    assert_eq!(read.series.context.link_mb_s, Some(440.0));
    assert!(fails(b"{\"schema\":\"drivethru-temp/1\",\"samples\":[]}").contains("another kind"));
    assert!(fails(b"{\"a\":1}").contains("samples"));
    assert!(fails(b"{").contains("EOF"));
}

#[test]
fn a_table_of_ours_keeps_its_verdict() {
    let verdict = serde_json::to_string(&crate::bench::detect::analyze(&Series::default())).expect("JSON");
    let run = |rows: &str, verdict: &str| {
        format!(
            r#"{{"schema":"drivethru-bench/1","samples":[{{"t_s":1.0,"mb_s":5.0,"cumulative_bytes":5,"op":"read"}}],
                "rows":{rows},"verdict":{verdict}}}"#
        )
    };
    let read = ok(&run(r#"[{"name":"4 KiB"}]"#, &verdict));
    let stored = read
        .verdict
        .as_ref()
        .map(|v| serde_json::to_string(v).expect("JSON"));
    assert_eq!(stored, Some(verdict.clone()));
    assert!(
        read.notes.iter().any(|n| n.contains("judged on its own")),
        "{:?}",
        read.notes
    );
    let read = ok(&run("[]", &verdict));
    assert_eq!((read.verdict, read.notes), (None, vec![]));
    assert!(fails(run("[1]", r#"{"cause":1}"#).as_bytes()).contains("verdict"));
    assert!(fails(run("[1]", "null").as_bytes()).contains("verdict"));
}

#[test]
fn rubbish_is_named() {
    assert!(fails(b"").contains("empty"));
    assert!(fails(b"\n\n# only a remark\n").contains("empty"));
    assert!(fails(b"t_s,mb_s\n").contains("empty"));
    assert!(fails(b"\x7fELF\x02\x01\x01\0\0\0").contains("no text"));
    assert!(fails(b"\xff\xfet\0_\0s\0").contains("UTF-16"));
    assert!(fails(b"a,b,c\n1,2,3\n").contains("the columns are: a, b, c"));
    assert!(fails(b"t_s,mb_s\n1,5\n2,x\n").contains("line 3: mb_s: cannot read \"x\""));
    assert!(fails(&vec![b'a'; 200_000]).contains("longer"));
    let read = ok("t_s,mb_s,op\n1,5,write\n2,5,write\nt_s,mb_s,op\n1,7,read\n3,5");
    assert_eq!(read.notes.len(), 3, "{:?}", read.notes);
    assert_eq!(read.series.samples.len(), 3);
    assert_eq!(ok("t_s,mb_s\n1,5\n").series.samples.len(), 1);
}

#[test]
fn long_files_are_joined() {
    let mut text = String::from("t_s,mb_s,op\n");
    for i in 1..=600_000_u32 {
        text.push_str(&format!("{i},100,write\n"));
    }
    let read = ok(&text);
    assert!(read.series.samples.len() < MAX_ROWS);
    assert!(rates(&read).iter().all(|r| (r - 100.0).abs() < 1e-6));
    assert!(read.notes.iter().any(|n| n.contains("joined")));
}

#[test]
fn joined_rows_are_equally_long_everywhere() {
    let mut text = String::from("t_s,mb_s,op,temp_c\n");
    for i in 1..=1_200_000_u32 {
        let (rate, temp) = if i <= 720_000 { (400, 40) } else { (250, 60) };
        text.push_str(&format!("{i},{rate},write,{temp}\n"));
    }
    let read = ok(&text);
    let samples = &read.series.samples;
    assert!((250_000..MAX_ROWS).contains(&samples.len()), "{}", samples.len());
    let mut begin = 0.0;
    for s in samples {
        assert!((s.t_s - begin - 4.0).abs() < 1e-6, "{begin} {s:?}");
        begin = s.t_s;
        let rate = if s.t_s <= 720_000.0 { 400.0 } else { 250.0 };
        assert!((s.mb_s - rate).abs() < 1e-6, "{s:?}");
    }
    let total = samples.last().map_or(0, |s| s.cumulative_bytes);
    assert_eq!(total, (720_000 * 400 + 480_000 * 250) * 1_000_000);
}

#[test]
fn figures_that_no_device_has_are_left_out() {
    let read = ok("t_s,mb_s,op,temp_c\n1,5,write,40\n2,-5,write,40\n3,1e300,write,40\n4,5,write,99999\n");
    assert_eq!(rates(&read), [5.0, 5.0]);
    assert_eq!(read.series.samples.get(1).and_then(|s| s.temp_c), None);
    assert_eq!(read.notes.len(), 2, "{:?}", read.notes);
    assert!(fails(b"t_s,mb_s\n1,NaN\n2,-3\n").contains("both a time and a rate"));
}

#[test]
fn bytes_are_counted_in_the_order_of_time() {
    let mut text = String::from("t_s,mb_s,op\n");
    for t in (501..=999).rev() {
        text.push_str(&format!("{t},100,write\n"));
    }
    let read = ok(&text);
    assert!(times(&read).is_sorted());
    let bytes = |read: &Imported| read.series.samples.last().map(|s| s.cumulative_bytes);
    assert_eq!(bytes(&read), Some(49_900_000_000));
    assert!(
        read.notes
            .iter()
            .any(|n| n.contains("line 3: the clock goes back"))
    );
    // So that joined neighbours are neighbours in time.
    let mut text = String::from("t_s,mb_s,op\n");
    for t in (1..=600_000).rev() {
        text.push_str(&format!("{t},{},write\n", if t % 2 == 0 { 50 } else { 150 }));
    }
    let read = ok(&text);
    assert!(times(&read).is_sorted());
    let odd = rates(&read).iter().filter(|r| **r != 100.0).count();
    assert!(odd <= 100_002, "{odd}");
}

#[test]
fn temperatures_of_another_file() {
    let mut log = ok("1000, 1000, 1, 0, 0\n2000, 1000, 1, 0, 0\n3000, 1000, 1, 0, 0\n");
    let temps = temperatures(&b"time,temperature\n0.5,40\n2.5,41\n99,50\n"[..]).expect("temperatures");
    assert_eq!(attach(&mut log, &temps), None);
    let seen: Vec<Option<f64>> = log.series.samples.iter().map(|s| s.temp_c).collect();
    assert_eq!(seen, [Some(40.0), None, Some(41.0)]);
    let temps = temperatures(&b"timestamp,temp_k\n2026-01-01T00:00:00Z,313.15\n"[..]).expect("temperatures");
    assert!(attach(&mut log, &temps).is_some_and(|n| n.contains("wall time")));
    assert!(temperatures(&b"a,b\n1,2\n"[..]).is_err());
    assert!(temperatures(&b""[..]).is_err());
}

#[test]
fn descriptions_fill_in_what_they_tell() {
    let read = meta(
        &br#"{"schema":"x","capacity_bytes":null,"link_mb_s":440,"sample_s":1.0,"start_offset_bytes":5}"#[..],
    )
    .expect("a description");
    let mut context = Context {
        capacity_bytes: Some(9),
        ..Context::default()
    };
    read.apply(&mut context);
    assert_eq!(
        (
            context.capacity_bytes,
            context.link_mb_s,
            context.start_offset_bytes
        ),
        (Some(9), Some(440.0), 5)
    );
    assert!(meta(&b"[1,2"[..]).is_err());
}
