//! The USB face: enumeration, Bulk-Only Transport and UAS, by bytes written out here.

use std::time::Duration;

use crate::sim::usb::{Finished, Speed, Transfer, TransferStatus, UsbDevice};

const IN: u8 = 0x81;
const OUT: u8 = 0x02;

/// A host controller that keeps count of its transfers and of time.
struct Host {
    device: UsbDevice,
    now: Duration,
    last: u64,
    /// Ended, and not asked for yet.
    ended: Vec<Finished>,
}

impl Host {
    fn new(spec: &str) -> Self {
        Self {
            device: UsbDevice::open(spec).unwrap(),
            now: Duration::ZERO,
            last: 0,
            ended: Vec::new(),
        }
    }

    fn bot(spec: &str) -> Self {
        let mut host = Self::new(spec);
        assert!(host.device.set_configuration(1, host.now));
        host
    }

    fn uas(spec: &str) -> Self {
        let mut host = Self::bot(spec);
        assert!(host.device.set_interface(0, 1, host.now));
        host
    }

    fn submit(&mut self, endpoint: u8, stream: u32, out: &[u8], in_len: usize) -> u64 {
        self.last += 1;
        let transfer = Transfer {
            id: self.last,
            endpoint,
            stream,
            setup: None,
            out: out.to_vec(),
            in_len,
        };
        self.device.submit(transfer, self.now);
        self.last
    }

    /// Lets up to two seconds pass until the transfer has ended.
    fn result(&mut self, id: u64) -> Option<Finished> {
        let until = self.now + Duration::from_secs(2);
        loop {
            while let Some(done) = self.device.finished(self.now) {
                self.ended.push(done);
            }
            if let Some(place) = self.ended.iter().position(|done| done.id == id) {
                return Some(self.ended.remove(place));
            }
            self.now = match self.device.next_due() {
                Some(due) if due > self.now && due <= until => due,
                _ => return None,
            };
        }
    }

    fn send(&mut self, endpoint: u8, bytes: &[u8]) -> Option<Finished> {
        let id = self.submit(endpoint, 0, bytes, 0);
        self.result(id)
    }

    fn receive(&mut self, endpoint: u8, len: usize) -> Option<Finished> {
        let id = self.submit(endpoint, 0, &[], len);
        self.result(id)
    }

    fn control(&mut self, setup: [u8; 8], in_len: usize) -> Finished {
        self.last += 1;
        let transfer = Transfer {
            id: self.last,
            endpoint: setup[0] & 0x80,
            stream: 0,
            setup: Some(setup),
            out: Vec::new(),
            in_len,
        };
        self.device.submit(transfer, self.now);
        self.result(self.last).expect("control transfers end at once")
    }

    fn clear_halt(&mut self, endpoint: u8) {
        let done = self.control([0x02, 0x01, 0, 0, endpoint, 0, 0, 0], 0);
        assert_eq!(done.status, TransferStatus::Done);
    }

    fn command(&mut self, cdb: &[u8], length: u32, to_host: bool) {
        let done = self.send(OUT, &wrapper(7, cdb, length, to_host)).unwrap();
        assert_eq!((done.status, done.moved_bytes), (TransferStatus::Done, 31));
    }

    /// (tag, residue, status) of the status wrapper that comes next.
    fn status(&mut self) -> (u32, u32, u8) {
        let done = self.receive(IN, 13).expect("a status");
        assert_eq!(
            (done.status, done.data.len()),
            (TransferStatus::Done, 13),
            "{done:?}"
        );
        assert_eq!(&done.data[..4], b"USBS");
        let word = |at: usize| u32::from_le_bytes(done.data[at..at + 4].try_into().unwrap());
        (word(4), word(8), done.data[12])
    }

    fn data(&mut self, len: usize) -> Vec<u8> {
        let done = self.receive(IN, len).expect("data");
        assert_eq!(done.status, TransferStatus::Done);
        done.data
    }

    fn cdbs(&self) -> Vec<u8> {
        self.device
            .target()
            .log()
            .iter()
            .map(|entry| entry.cdb[0])
            .collect()
    }
}

fn wrapper(tag: u32, cdb: &[u8], length: u32, to_host: bool) -> Vec<u8> {
    let mut out = b"USBC".to_vec();
    out.extend(tag.to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend([if to_host { 0x80 } else { 0 }, 0, cdb.len() as u8]);
    out.extend(cdb);
    out.resize(31, 0);
    out
}

const INQUIRY_36: [u8; 6] = [0x12, 0, 0, 0, 36, 0];
const READ_1: [u8; 10] = [0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0];
const WRITE_1: [u8; 10] = [0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0];
const TEST_UNIT_READY: [u8; 6] = [0; 6];
const IDENTIFY: [u8; 12] = [0xa1, 0x08, 0x0e, 0, 1, 0, 0, 0, 0, 0xec, 0, 0];

#[test]
fn the_device_tells_what_it_is() {
    let mut host = Host::new("ssd");
    let device = host.control([0x80, 6, 0, 1, 0, 0, 18, 0], 18).data;
    assert_eq!(device[..2], [18, 1]);
    assert_eq!(device[2..4], [0x00, 0x03]);
    assert_eq!(device[8..14], [0x4c, 0x17, 0xaa, 0x55, 0x01, 0x38]);
    let head = host.control([0x80, 6, 0, 2, 0, 0, 9, 0], 9).data;
    let total = usize::from(u16::from_le_bytes([head[2], head[3]]));
    let whole = host.control([0x80, 6, 0, 2, 0, 0, 0xff, 0], 255).data;
    assert_eq!(whole.len(), total, "one configuration, as long as it says");
    // Setting 1 is UAS; its pipes are named after each endpoint and its companion, which tells of 32 streams.
    let uas = whole
        .windows(9)
        .position(|w| w == [9, 4, 0, 1, 4, 8, 6, 0x62, 0])
        .unwrap();
    assert_eq!(
        whole[uas + 9..uas + 9 + 17],
        [7, 5, 0x81, 2, 0, 4, 0, 6, 0x30, 15, 5, 0, 0, 4, 0x24, 3, 0]
    );
    let serial = host.control([0x80, 6, 3, 3, 9, 4, 255, 0], 255).data;
    assert_eq!(serial[..6], [26, 3, b'1', 0, b'2', 0]);
    assert_eq!(
        host.control([0x80, 6, 0, 6, 0, 0, 10, 0], 10).status,
        TransferStatus::Stall
    );
    assert_eq!(host.device.identity().speed, Speed::Super);
    // A short read is a short read.
    assert_eq!(host.control([0x80, 6, 0, 1, 0, 0, 8, 0], 8).data.len(), 8);
    // Nothing but the control endpoint works before the device is configured.
    assert_eq!(host.receive(IN, 13).unwrap().status, TransferStatus::Stall);
    let mut slow = Host::new("ssd,speed=480");
    let whole = slow.control([0x80, 6, 0, 2, 0, 0, 0xff, 0], 255).data;
    assert!(
        !whole.windows(2).any(|w| w == [6, 0x30]),
        "no companions at high speed"
    );
    assert_eq!(slow.control([0x80, 6, 0, 6, 0, 0, 10, 0], 10).data.len(), 10);
    let plain = Host::new("stick");
    assert_eq!(plain.device.endpoints().len(), 2);
}

#[test]
fn bot_moves_data_both_ways() {
    let mut host = Host::bot("ssd");
    assert_eq!(host.control([0xa1, 0xfe, 0, 0, 0, 0, 1, 0], 1).data, [0]);
    host.command(&INQUIRY_36, 36, true);
    assert_eq!(&host.data(36)[8..12], b"ASMT");
    assert_eq!(host.status(), (7, 0, 0));
    let block: Vec<u8> = (0..512u32).map(|n| n as u8).collect();
    host.command(&WRITE_1, 512, false);
    assert_eq!(host.send(OUT, &block).unwrap().moved_bytes, 512);
    assert_eq!(host.status(), (7, 0, 0));
    host.command(&READ_1, 512, true);
    assert_eq!(host.data(200), block[..200], "a data phase may come in pieces");
    assert_eq!(host.data(312), block[200..]);
    assert_eq!(host.status(), (7, 0, 0));
    host.command(&IDENTIFY, 512, true);
    assert_eq!(host.data(512).len(), 512);
    assert_eq!(host.status(), (7, 0, 0));
    assert_eq!(host.cdbs(), [0x12, 0x2a, 0x28, 0xa1]);
}

#[test]
fn the_thirteen_cases_end_as_the_standard_says() {
    let ready = |host: &mut Host| {
        host.command(&TEST_UNIT_READY, 0, false);
        assert_eq!(host.status(), (7, 0, 0));
    };
    let broken = |host: &mut Host| {
        // Only Reset Recovery helps: the class request, then both halts.
        assert_eq!(host.receive(IN, 13).unwrap().status, TransferStatus::Stall);
        host.clear_halt(IN);
        assert_eq!(host.receive(IN, 13).unwrap().status, TransferStatus::Stall);
        host.control([0x21, 0xff, 0, 0, 0, 0, 0, 0], 0);
        host.clear_halt(IN);
        host.clear_halt(OUT);
        ready(host);
    };
    let mut host = Host::bot("ssd");
    // 1: Hn = Dn.
    ready(&mut host);
    // 2: Hn < Di, 3: Hn < Do.
    for cdb in [&INQUIRY_36[..], &WRITE_1[..]] {
        host.command(cdb, 0, true);
        assert_eq!(host.status().2, 2);
        broken(&mut host);
    }
    // 4: Hi > Dn; this bridge ends it with a packet of no length, the stick with a stall.
    host.command(&TEST_UNIT_READY, 64, true);
    assert_eq!(host.data(64), Vec::<u8>::new());
    assert_eq!(host.status(), (7, 64, 0));
    let mut stick = Host::bot("stick");
    stick.command(&TEST_UNIT_READY, 64, true);
    assert_eq!(stick.receive(IN, 64).unwrap().status, TransferStatus::Stall);
    stick.clear_halt(IN);
    assert_eq!(stick.status(), (7, 64, 0));
    // 5: Hi > Di.
    host.command(&INQUIRY_36, 96, true);
    assert_eq!(host.data(96).len(), 36);
    assert_eq!(host.status(), (7, 60, 0));
    // The same when the data fills the first transfer to its end: a packet of no length closes the phase.
    host.command(&INQUIRY_36, 96, true);
    assert_eq!(host.data(36).len(), 36);
    assert_eq!(host.data(60), Vec::<u8>::new());
    assert_eq!(host.status(), (7, 60, 0));
    // 7: Hi < Di.
    host.command(&READ_1, 100, true);
    assert_eq!(host.data(100).len(), 100);
    assert_eq!(host.status(), (7, 0, 2));
    broken(&mut host);
    // 8: Hi <> Do.
    host.command(&WRITE_1, 512, true);
    assert_eq!(host.receive(IN, 512).unwrap().status, TransferStatus::Stall);
    host.clear_halt(IN);
    assert_eq!(host.status().2, 2);
    broken(&mut host);
    // 9: Ho > Dn.
    host.command(&TEST_UNIT_READY, 40, false);
    assert_eq!(host.send(OUT, &[0; 40]).unwrap().moved_bytes, 40);
    assert_eq!(host.status(), (7, 40, 0));
    // 10: Ho <> Di.
    host.command(&READ_1, 512, false);
    assert_eq!(host.send(OUT, &[0; 512]).unwrap().status, TransferStatus::Stall);
    assert_eq!(host.status().2, 2);
    broken(&mut host);
    // 11: Ho > Do.
    host.command(&WRITE_1, 1024, false);
    host.send(OUT, &[3; 1024]);
    assert_eq!(host.status(), (7, 512, 0));
    // 13: Ho < Do. Nothing of it is written.
    host.command(&WRITE_1, 256, false);
    host.send(OUT, &[9; 256]);
    assert_eq!(host.status().2, 2);
    broken(&mut host);
    host.command(&READ_1, 512, true);
    assert_eq!(host.data(512), vec![3; 512]);
    assert_eq!(host.status(), (7, 0, 0));
}

#[test]
fn a_wrapper_that_means_nothing_halts_both_pipes() {
    for bad in [
        wrapper(1, &TEST_UNIT_READY, 0, true)[..30].to_vec(),
        [wrapper(1, &TEST_UNIT_READY, 0, true), vec![0]].concat(),
        vec![0; 31],
        Vec::new(),
        {
            let mut lun = wrapper(1, &TEST_UNIT_READY, 0, true);
            lun[13] = 1;
            lun
        },
        {
            let mut empty = wrapper(1, &TEST_UNIT_READY, 0, true);
            empty[14] = 0;
            empty
        },
    ] {
        let mut host = Host::bot("ssd");
        host.send(OUT, &bad);
        assert_eq!(host.receive(IN, 13).unwrap().status, TransferStatus::Stall);
        assert_eq!(host.send(OUT, &bad).unwrap().status, TransferStatus::Stall);
        assert_eq!(host.cdbs(), Vec::<u8>::new());
        // A reset of the port helps as well.
        host.device.bus_reset(host.now);
        assert!(host.device.set_configuration(1, host.now));
        host.command(&TEST_UNIT_READY, 0, true);
        assert_eq!(host.status(), (7, 0, 0));
    }
}

#[test]
fn bot_keeps_sense_until_it_is_asked_for() {
    let mut host = Host::bot("ssd");
    let unknown = [0xde, 0, 0, 0, 0, 0];
    let request = [0x03, 0, 0, 0, 18, 0];
    let sense = |host: &mut Host| {
        host.command(&request, 18, true);
        let data = host.data(18);
        assert_eq!(host.status().2, 0);
        (data[2] & 0x0f, data[12], data[13])
    };
    host.command(&unknown, 0, true);
    assert_eq!(host.status(), (7, 0, 1));
    assert_eq!(sense(&mut host), (5, 0x20, 0));
    assert_eq!(sense(&mut host), (0, 0, 0), "it is told once");
    host.command(&unknown, 0, true);
    host.status();
    host.command(&TEST_UNIT_READY, 0, true);
    host.status();
    assert_eq!(sense(&mut host), (0, 0, 0), "another command forgets it");
    // A pass-through result is longer than 18 bytes, and comes as long as asked for.
    host.command(
        &[
            0x85, 0x06, 0x2c, 0, 0xda, 0, 0, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0,
        ],
        0,
        true,
    );
    assert_eq!(host.status().2, 1);
    host.command(&[0x03, 0, 0, 0, 96, 0], 96, true);
    let long = host.data(96);
    assert_eq!((long.len(), long[0], long[8]), (22, 0x72, 0x09));
    assert_eq!(host.status(), (7, 74, 0));
}

#[test]
fn faults_of_bot_are_what_they_say() {
    let identify = |host: &mut Host| {
        host.command(&IDENTIFY, 512, true);
    };
    let mut host = Host::bot("ssd,fault=csw-tag,fault_count=1");
    identify(&mut host);
    assert_eq!(host.data(512).len(), 512);
    assert_ne!(host.status().0, 7);
    identify(&mut host);
    host.data(512);
    assert_eq!(host.status(), (7, 0, 0), "it strikes once");
    let mut host = Host::bot("ssd,fault=csw-residue");
    identify(&mut host);
    host.data(512);
    assert_eq!(host.status(), (7, 512, 0));
    let mut host = Host::bot("ssd,fault=phase-error");
    identify(&mut host);
    assert_eq!(host.data(512), Vec::<u8>::new());
    assert_eq!(host.status().2, 2);
    let mut host = Host::bot("ssd,fault=babble");
    identify(&mut host);
    assert_eq!(host.receive(IN, 512).unwrap().status, TransferStatus::Babble);
    let mut host = Host::bot("ssd,fault=stall");
    identify(&mut host);
    assert_eq!(host.receive(IN, 512).unwrap().status, TransferStatus::Stall);
    host.clear_halt(IN);
    assert_eq!(host.status(), (7, 512, 1));
    let mut host = Host::bot("ssd,fault=short");
    identify(&mut host);
    assert_eq!(host.data(512).len(), 256);
    assert_eq!(host.status(), (7, 256, 0));
    let mut host = Host::bot("ssd,unknown=stall");
    host.command(&[0xde, 0, 0, 0, 0, 0], 0, true);
    assert_eq!(host.receive(IN, 13).unwrap().status, TransferStatus::Stall);
    host.clear_halt(IN);
    assert_eq!(host.status().2, 1);
}

#[test]
fn a_silent_device_answers_again_after_the_reset_that_it_needs() {
    for (fault, class_reset_helps) in [("timeout", true), ("hang", false)] {
        let mut host = Host::bot(&format!("ssd,fault={fault},fault_count=1"));
        host.command(&IDENTIFY, 512, true);
        let waiting = host.submit(IN, 0, &[], 512);
        assert_eq!(host.result(waiting), None);
        assert!(host.device.cancel(waiting, host.now));
        assert_eq!(host.result(waiting).unwrap().status, TransferStatus::Cancelled);
        assert!(!host.device.cancel(waiting, host.now));
        host.control([0x21, 0xff, 0, 0, 0, 0, 0, 0], 0);
        let next = host.send(OUT, &wrapper(7, &TEST_UNIT_READY, 0, true));
        assert_eq!(next.is_some(), class_reset_helps, "{fault}");
        host.device.bus_reset(host.now);
        host.device.set_configuration(1, host.now);
        host.command(&IDENTIFY, 512, true);
        assert_eq!(host.data(512).len(), 512);
        assert_eq!(host.status(), (7, 0, 0));
    }
}

#[test]
fn a_vendor_command_may_kill_the_next_read() {
    let mut host = Host::bot("ssd,fault=die-after-vendor");
    for cdb in [&IDENTIFY[..], &READ_1[..]] {
        host.command(cdb, 512, true);
        assert_eq!(host.data(512).len(), 512);
        host.status();
    }
    host.command(&[0xe6, 0, 0, 0, 0, 0], 0, true);
    assert_eq!(host.status().2, 1);
    host.command(&TEST_UNIT_READY, 0, true);
    assert_eq!(host.status().2, 0, "only the read dies");
    host.command(&READ_1, 512, true);
    assert_eq!(host.receive(IN, 512), None);
}

#[test]
fn a_device_that_leaves_the_bus_may_come_back() {
    let mut host = Host::bot("ssd,fault=replug,fault_count=1");
    host.command(&IDENTIFY, 512, true);
    let waiting = host.submit(IN, 0, &[], 512);
    assert!(!host.device.plugged());
    assert_eq!(host.result(waiting).unwrap().status, TransferStatus::Error);
    let due = host.device.next_due().unwrap();
    host.now = due;
    assert_eq!(host.device.finished(host.now), None);
    assert!(host.device.plugged());
    assert_eq!(host.device.configuration(), 0);
    let mut host = Host::bot("ssd,fault=gone");
    host.command(&IDENTIFY, 512, true);
    assert!(!host.device.plugged());
    assert_eq!(host.device.next_due(), None);
    host.device.plug(host.now);
    assert!(host.device.plugged());
}

#[test]
fn a_late_answer_comes_after_a_minute() {
    let mut host = Host::bot("ssd,fault=late");
    host.command(&IDENTIFY, 512, true);
    let waiting = host.submit(IN, 0, &[], 512);
    assert_eq!(host.result(waiting), None);
    assert!(host.device.next_due().unwrap() >= Duration::from_secs(61));
    host.now = host.device.next_due().unwrap();
    assert_eq!(host.result(waiting).unwrap().data.len(), 512);
}

// --- UAS

const DATA_IN: u8 = 0x81;
const DATA_OUT: u8 = 0x02;
const STATUS: u8 = 0x83;
const COMMAND: u8 = 0x04;

fn command_unit(tag: u16, cdb: &[u8]) -> Vec<u8> {
    let mut out = vec![0x01, 0];
    out.extend(tag.to_be_bytes());
    out.resize(16, 0);
    out.extend(cdb);
    out.resize(32, 0);
    out
}

fn task_unit(tag: u16, function: u8, of: u16) -> Vec<u8> {
    let mut out = vec![0x05, 0];
    out.extend(tag.to_be_bytes());
    out.extend([function, 0]);
    out.extend(of.to_be_bytes());
    out.resize(16, 0);
    out
}

fn sense_unit(tag: u16, status: u8) -> Vec<u8> {
    let mut out = vec![0x03, 0];
    out.extend(tag.to_be_bytes());
    out.extend([0, 0, status]);
    out.resize(16, 0);
    out
}

#[test]
fn uas_with_streams_sends_data_and_status_on_the_tag() {
    let mut host = Host::uas("ssd");
    let status = host.submit(STATUS, 3, &[], 112);
    let room = host.submit(DATA_IN, 3, &[], 36);
    let other = host.submit(STATUS, 4, &[], 112);
    host.send(COMMAND, &command_unit(3, &INQUIRY_36));
    assert_eq!(&host.result(room).unwrap().data[8..12], b"ASMT");
    assert_eq!(host.result(status).unwrap().data, sense_unit(3, 0));
    assert_eq!(host.result(other), None, "the other stream is left alone");
    // Several at once; the data of each goes its own way.
    let block = vec![0x77; 512];
    let status = [5, 6].map(|tag| host.submit(STATUS, tag, &[], 112));
    let out = host.submit(DATA_OUT, 5, &block, 0);
    let room = host.submit(DATA_IN, 6, &[], 512);
    host.send(COMMAND, &command_unit(5, &WRITE_1));
    host.send(COMMAND, &command_unit(6, &READ_1));
    assert_eq!(host.result(out).unwrap().moved_bytes, 512);
    assert_eq!(host.result(status[0]).unwrap().data, sense_unit(5, 0));
    assert_eq!(host.result(room).unwrap().data, block);
    assert_eq!(host.result(status[1]).unwrap().data, sense_unit(6, 0));
    // No data though the host has room for some: good ends the pipe with no bytes, a failure leaves it to the host.
    let status = host.submit(STATUS, 7, &[], 112);
    let room = host.submit(DATA_IN, 7, &[], 64);
    host.send(COMMAND, &command_unit(7, &TEST_UNIT_READY));
    assert_eq!(host.result(room).unwrap().data, Vec::<u8>::new());
    assert_eq!(host.result(status).unwrap().data, sense_unit(7, 0));
    let status = host.submit(STATUS, 8, &[], 112);
    let room = host.submit(DATA_IN, 8, &[], 64);
    host.send(COMMAND, &command_unit(8, &[0xde, 0, 0, 0, 0, 0]));
    let failed = host.result(status).unwrap().data;
    assert_eq!(
        (failed[6], failed[14], failed[15], failed[16], failed[28]),
        (2, 0, 18, 0x70, 0x20)
    );
    assert_eq!(host.result(room), None);
    assert!(host.device.cancel(room, host.now));
}

#[test]
fn uas_without_streams_says_when_it_is_ready() {
    let mut host = Host::uas("ssd,speed=480");
    let ready = host.submit(STATUS, 0, &[], 112);
    host.send(COMMAND, &command_unit(9, &INQUIRY_36));
    assert_eq!(host.result(ready).unwrap().data, [0x06, 0, 0, 9]);
    let status = host.submit(STATUS, 0, &[], 112);
    assert_eq!(host.result(status), None, "the data comes first");
    let room = host.submit(DATA_IN, 0, &[], 36);
    assert_eq!(host.result(room).unwrap().data.len(), 36);
    assert_eq!(host.result(status).unwrap().data, sense_unit(9, 0));
    let ready = host.submit(STATUS, 0, &[], 112);
    host.send(COMMAND, &command_unit(10, &WRITE_1));
    assert_eq!(host.result(ready).unwrap().data, [0x07, 0, 0, 10]);
    let status = host.submit(STATUS, 0, &[], 112);
    let out = host.submit(DATA_OUT, 0, &[1; 512], 0);
    assert_eq!(host.result(out).unwrap().moved_bytes, 512);
    assert_eq!(host.result(status).unwrap().data, sense_unit(10, 0));
    let status = host.submit(STATUS, 0, &[], 112);
    host.send(COMMAND, &command_unit(11, &TEST_UNIT_READY));
    assert_eq!(host.result(status).unwrap().data, sense_unit(11, 0));
    // IDENTIFY with the length in COUNT: the bridge knows it without being told by the host.
    let ready = host.submit(STATUS, 0, &[], 112);
    host.send(COMMAND, &command_unit(12, &IDENTIFY));
    assert_eq!(host.result(ready).unwrap().data, [0x06, 0, 0, 12]);
    let room = host.submit(DATA_IN, 0, &[], 512);
    assert_eq!(host.result(room).unwrap().data.len(), 512);
}

#[test]
fn after_an_overrun_there_is_silence_under_uas() {
    let mut host = Host::uas("ssd,fault=babble,fault_count=1");
    let status = host.submit(STATUS, 1, &[], 112);
    let room = host.submit(DATA_IN, 1, &[], 512);
    host.send(COMMAND, &command_unit(1, &IDENTIFY));
    assert_eq!(host.result(room).unwrap().status, TransferStatus::Babble);
    assert_eq!(host.result(status), None);
    host.device.bus_reset(host.now);
    assert!(host.device.set_configuration(1, host.now));
    host.command(&IDENTIFY, 512, true);
    assert_eq!(host.data(512).len(), 512);
    assert_eq!(host.status(), (7, 0, 0));
}

#[test]
fn task_management_ends_what_it_names() {
    let mut host = Host::uas("ssd,fault=timeout,fault_count=1");
    let status = host.submit(STATUS, 1, &[], 112);
    let room = host.submit(DATA_IN, 1, &[], 512);
    host.send(COMMAND, &command_unit(1, &IDENTIFY));
    assert_eq!((host.result(status), host.result(room)), (None, None));
    let mut answer = |tag: u16, function: u8, of: u16| {
        let id = host.submit(STATUS, u32::from(tag), &[], 112);
        host.send(COMMAND, &task_unit(tag, function, of));
        let unit = host.result(id).unwrap().data;
        assert_eq!((unit[0], unit[3]), (0x04, tag as u8));
        unit[7]
    };
    assert_eq!(answer(20, 0x80, 1), 0x08, "it is there");
    assert_eq!(answer(21, 0x80, 2), 0x00, "that one is not");
    assert_eq!(answer(22, 0x82, 1), 0x04, "not supported");
    assert_eq!(answer(23, 0x01, 1), 0x00);
    assert_eq!(answer(24, 0x80, 1), 0x00, "it was aborted");
    // The next one is served.
    let status = host.submit(STATUS, 2, &[], 112);
    host.send(COMMAND, &command_unit(2, &TEST_UNIT_READY));
    assert_eq!(host.result(status).unwrap().data, sense_unit(2, 0));
    // A tag that is taken, and a unit that means nothing.
    let mut host = Host::uas("ssd,fault=timeout");
    host.send(COMMAND, &command_unit(1, &IDENTIFY));
    let status = host.submit(STATUS, 1, &[], 112);
    host.send(COMMAND, &command_unit(1, &IDENTIFY));
    assert_eq!(host.result(status).unwrap().data[7], 0x0a);
    let status = host.submit(STATUS, 9, &[], 112);
    host.send(COMMAND, &[0x7f, 0, 0, 9]);
    assert_eq!(host.result(status).unwrap().data[7], 0x02);
}

/// The last block, and those that a narrow address would wrap to.
#[test]
fn every_profile_reaches_its_last_block() {
    for profile in crate::sim::profiles() {
        let mut host = Host::bot(&profile.name);
        let target = host.device.target();
        let (blocks, bytes) = (target.blocks(), target.block_bytes() as usize);
        let last = blocks - 1;
        // READ(16) and WRITE(16) where the address needs them.
        let cdb = |write: bool, lba: u64| -> Vec<u8> {
            match u32::try_from(lba) {
                Ok(lba) => {
                    let [a, b, c, d] = lba.to_be_bytes();
                    vec![if write { 0x2a } else { 0x28 }, 0, a, b, c, d, 0, 0, 1, 0]
                }
                Err(_) => {
                    let mut cdb = vec![if write { 0x8a } else { 0x88 }, 0];
                    cdb.extend(lba.to_be_bytes());
                    cdb.extend([0, 0, 0, 1, 0, 0]);
                    cdb
                }
            }
        };
        let stamp = vec![0xa7; bytes];
        host.command(&cdb(true, last), bytes as u32, false);
        host.send(OUT, &stamp);
        assert_eq!(host.status(), (7, 0, 0), "{}", profile.name);
        host.command(&cdb(false, last), bytes as u32, true);
        assert!(host.data(bytes) == stamp, "{}", profile.name);
        host.status();
        for bits in [28, 32] {
            let wrapped = last & ((1 << bits) - 1);
            if wrapped != last {
                host.command(&cdb(false, wrapped), bytes as u32, true);
                assert!(host.data(bytes).iter().all(|b| *b == 0), "{}", profile.name);
                host.status();
            }
        }
    }
}

#[test]
fn a_reset_ends_a_command_that_lasts_for_hours() {
    for (spec, uas) in [("hdd", false), ("ssd", true)] {
        let captive = [0xa1, 0x06, 0, 0xd4, 0, 0x82, 0x4f, 0xc2, 0, 0xb0, 0, 0];
        let mut host = if uas { Host::uas(spec) } else { Host::bot(spec) };
        if uas {
            host.send(COMMAND, &command_unit(1, &captive));
        } else {
            host.command(&captive, 0, true);
        }
        host.now = Duration::from_secs(30);
        host.device.bus_reset(host.now);
        assert!(host.device.set_configuration(1, host.now));
        let began = host.now;
        host.command(&TEST_UNIT_READY, 0, true);
        assert_eq!(host.status(), (7, 0, 0));
        assert!(host.now < began + Duration::from_secs(2), "{spec}");
        // The test is in the log as interrupted by a reset: entry 0, result 2 in the upper half.
        host.command(
            &[0xa1, 0x08, 0x0e, 0xd5, 1, 0x06, 0x4f, 0xc2, 0, 0xb0, 0, 0],
            512,
            true,
        );
        let log = host.data(512);
        assert_eq!((log[2], log[3] >> 4), (0x82, 2));
        host.status();
    }
    // Left alone, it answers when the test is over.
    let mut host = Host::bot("ssd");
    host.command(
        &[0xa1, 0x06, 0, 0xd4, 0, 0x81, 0x4f, 0xc2, 0, 0xb0, 0, 0],
        0,
        true,
    );
    let waiting = host.submit(IN, 0, &[], 13);
    let due = host.device.next_due().unwrap();
    assert!(
        due >= Duration::from_secs(120) && due < Duration::from_secs(121),
        "{due:?}"
    );
    host.now = due;
    assert_eq!(host.result(waiting).unwrap().data[12], 0);
}

#[test]
fn verify_compares_what_comes() {
    let compare = |last: u8| [0x2f, 0x02, 0, 0, 0, 0, 0, 0, last, 0];
    let mut host = Host::bot("ssd");
    for (byte, status) in [(0, 0), (9, 1)] {
        host.command(&compare(1), 512, false);
        host.send(OUT, &[byte; 512]);
        assert_eq!(host.status(), (7, 0, status));
    }
    let mut host = Host::uas("ssd");
    for (tag, byte, status) in [(1, 0, 0), (2, 9, 2)] {
        let waiting = host.submit(STATUS, u32::from(tag), &[], 112);
        host.submit(DATA_OUT, u32::from(tag), &[byte; 512], 0);
        host.send(COMMAND, &command_unit(tag, &compare(1)));
        assert_eq!(host.result(waiting).unwrap().data[6], status);
    }
}

#[test]
fn a_fake_block_size_is_for_blocks_only() {
    let mut host = Host::bot("ssd,fake_4k=1");
    // WRITE DMA of one sector of the drive, 512 bytes; then the bridge's block that it is part of.
    host.command(&[0xa1, 0x0c, 0x06, 0, 1, 3, 0, 0, 0x40, 0xca, 0, 0], 512, false);
    host.send(OUT, &[0x3c; 512]);
    assert_eq!(host.status(), (7, 0, 0));
    host.command(&READ_1, 4096, true);
    let block = host.data(4096);
    assert!(block[3 * 512..4 * 512].iter().all(|b| *b == 0x3c) && block[4 * 512] == 0);
}

#[test]
fn report_luns_keeps_to_what_was_asked() {
    let mut host = Host::bot("ssd");
    host.command(&[0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0], 8, true);
    assert_eq!(host.data(8), [0, 0, 0, 8, 0, 0, 0, 0]);
    assert_eq!(host.status(), (7, 0, 0));
}

#[test]
fn what_nobody_needs_is_not_kept() {
    // A packet that is not full ends the data phase; what follows is the next wrapper.
    let mut host = Host::bot("ssd");
    host.command(&WRITE_1, 512, false);
    host.send(OUT, &[1; 100]);
    assert_eq!(host.status().2, 2);
    // Commands that are refused for their data phase are in the log all the same.
    assert_eq!(host.cdbs(), [0x2a]);
    assert_eq!(host.device.target().log()[0].status, None);
    // Data that the command does not want is counted and thrown away, whatever its length.
    let mut host = Host::bot("ssd");
    host.command(&TEST_UNIT_READY, 64 << 20, false);
    for _ in 0..63 {
        host.send(OUT, &vec![0; 1 << 20]);
    }
    let waiting = host.submit(IN, 0, &[], 13);
    assert_eq!(host.result(waiting), None);
    host.send(OUT, &vec![0; 1 << 20]);
    assert_eq!(host.result(waiting).unwrap().data[8..], [0, 0, 0, 4, 0]);
}

#[test]
fn a_host_that_takes_no_answers_has_to_wait() {
    let mut host = Host::uas("ssd");
    let mut taken = 0;
    for _ in 0..4096 {
        taken += usize::from(host.send(COMMAND, &[0x7f, 0, 0, 1]).is_some());
    }
    assert_eq!(taken, 512, "then the pipe is full");
    let answers: Vec<u64> = (0..600).map(|_| host.submit(STATUS, 1, &[], 112)).collect();
    assert_eq!(host.result(answers[599]).unwrap().data[7], 0x02);
    // Tags are streams, and there are 32.
    let mut host = Host::uas("ssd");
    for tag in [0, 33] {
        host.send(COMMAND, &command_unit(tag, &TEST_UNIT_READY));
    }
    assert_eq!(host.cdbs(), Vec::<u8>::new());
    // A device whose data nobody fetches has nothing to do.
    let mut host = Host::uas("ssd,speed=480");
    host.submit(STATUS, 0, &[], 112);
    host.send(COMMAND, &command_unit(1, &INQUIRY_36));
    assert_eq!(host.device.next_due(), None);
}

#[test]
fn any_transfers_are_handled() {
    use proptest::prelude::*;
    let transfer = (
        prop_oneof![
            Just(0x00u8),
            Just(0x80),
            Just(0x81),
            Just(0x02),
            Just(0x83),
            Just(0x04),
            any::<u8>()
        ],
        0..4u32,
        prop_oneof![Just(None), any::<[u8; 8]>().prop_map(Some)],
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..80),
            any::<[u8; 16]>().prop_map(|cdb| wrapper(1, &cdb, 512, true)),
            any::<[u8; 16]>().prop_map(|cdb| command_unit(1, &cdb)),
        ],
        0..2048usize,
    );
    proptest!(ProptestConfig::with_cases(200), |(
        setting in 0..2u8,
        speed in prop_oneof![Just(480), Just(5000)],
        transfers in proptest::collection::vec(transfer, 1..20),
    )| {
        let mut device = UsbDevice::open(&format!("ssd,speed={speed}")).unwrap();
        device.set_configuration(1, Duration::ZERO);
        device.set_interface(0, setting, Duration::ZERO);
        let mut open = 0usize;
        for (id, (endpoint, stream, setup, out, in_len)) in (1u64..).zip(transfers) {
            let setup = if endpoint & 0x0f == 0 { setup } else { None };
            device.submit(Transfer { id, endpoint, stream, setup, out, in_len }, Duration::from_secs(id));
            open += 1;
            while let Some(done) = device.finished(Duration::from_secs(id)) {
                prop_assert!(done.data.len() <= in_len.max(2048));
                open -= 1;
            }
        }
        device.unplug(Duration::from_secs(100));
        while device.finished(Duration::from_secs(100)).is_some() {
            open -= 1;
        }
        prop_assert_eq!(open, 0, "every transfer ends exactly once");
    });
}
