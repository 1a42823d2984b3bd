//! ATA PASS-THROUGH (12) and (16) (SAT, "ATA PASS-THROUGH").

use super::{Answer, Bridge, Inner, Want, sense};
use crate::sim::buf::byte;
use crate::sim::drive::transfer::moves_sectors;
use crate::sim::drive::{Nature, Registers, Taskfile};
use crate::sim::profiles::{CkCond, Rri, Sat, Tpsiu};
use crate::sim::spec::Fault;
use sense::Code;

/// A pass-through CDB, taken apart.
#[derive(Debug, Clone, Copy)]
struct Request {
    protocol: u8,
    extend: bool,
    flags: u8,
    taskfile: Taskfile,
}

impl Request {
    fn parse(cdb: &[u8]) -> Self {
        let b = |n: usize| byte(cdb, n);
        let pair = |high: u8, low: u8| u16::from_be_bytes([high, low]);
        let long = b(0) == 0x85;
        let extend = long && b(1) & 1 == 1;
        let upper = |n: usize| if extend { b(n) } else { 0 };
        let (features, count, lba, device, command) = if long {
            let lba = [0, 0, upper(11), upper(9), upper(7), b(12), b(10), b(8)];
            (
                pair(upper(3), b(4)),
                pair(upper(5), b(6)),
                u64::from_be_bytes(lba),
                b(13),
                b(14),
            )
        } else {
            let lba = [0, 0, 0, 0, 0, b(7), b(6), b(5)];
            (
                u16::from(b(3)),
                u16::from(b(4)),
                u64::from_be_bytes(lba),
                b(8),
                b(9),
            )
        };
        Self {
            protocol: b(1) >> 1 & 0x0f,
            extend,
            flags: b(2),
            taskfile: Taskfile {
                features,
                count,
                lba,
                // Device 0 is the only one behind the bridge.
                device: device & !0x10,
                command,
            },
        }
    }

    fn ck_cond(&self) -> bool {
        self.flags & 0x20 != 0
    }

    fn is_data_in(&self) -> bool {
        self.flags & 0x08 != 0
    }

    /// Bytes of a data-in command whose transport does not tell: what its registers say, one sector where they do not.
    fn usual_bytes(&self, sector_bytes: u64) -> usize {
        if !self.is_data_in() {
            return 0;
        }
        usize::try_from(self.length_bytes(512, sector_bytes)).unwrap_or(usize::MAX)
    }

    /// Bytes that the CDB announces, given what the transport carries and the drive's sector size.
    fn length_bytes(&self, transport_bytes: u64, sector_bytes: u64) -> u64 {
        let units = match self.flags & 0x03 {
            0 => return 0,
            1 => u64::from(self.taskfile.features),
            2 => u64::from(self.taskfile.count),
            _ => return transport_bytes,
        };
        let reads_or_writes = moves_sectors(self.taskfile.command);
        match (self.flags & 0x04 != 0, reads_or_writes) {
            (false, _) => units,
            (true, true) => units.saturating_mul(sector_bytes),
            (true, false) => units.saturating_mul(512),
        }
    }
}

impl Bridge {
    /// Whether this bridge knows the opcode.
    pub(super) fn takes_pass_through(&self, opcode: u8) -> bool {
        match (self.profile.sat, opcode) {
            (Sat::Both, 0x85 | 0xa1) | (Sat::Only16, 0x85) | (Sat::Only12, 0xa1) => true,
            (Sat::Both | Sat::Only16 | Sat::Only12 | Sat::None, _) => false,
        }
    }

    /// The data phase that a pass-through CDB asks for.
    pub(super) fn want_of_pass_through(&self, cdb: &[u8]) -> Want {
        let request = Request::parse(cdb);
        if !self.takes_pass_through(byte(cdb, 0)) {
            return Want::Nothing;
        }
        match (request.protocol, request.flags & 0x03) {
            (15, _) => Want::In,
            (0 | 1 | 3, _) | (_, 0) => Want::Nothing,
            _ if request.is_data_in() => Want::In,
            (_, 3) => Want::OutAll,
            _ => Want::Out(request.length_bytes(0, self.drive_sector_bytes())),
        }
    }

    pub(super) fn pass_through(&mut self, cdb: &[u8], data_out: &[u8], room: Option<usize>) -> Answer {
        let request = Request::parse(cdb);
        if request.protocol == 15 {
            return self.response_information(&request);
        }
        // A transport that does not tell is taken to carry what the CDB says.
        let in_len = room.unwrap_or_else(|| request.usual_bytes(self.drive_sector_bytes()));
        if let Some(refusal) = self.refuse(&request, data_out.len(), in_len) {
            return refusal;
        }
        let sector_bytes = self.drive_sector_bytes();
        let length = request.length_bytes((data_out.len().max(in_len)) as u64, sector_bytes);
        if length > self.profile.max_passthrough_bytes {
            return Answer::invalid_field(2);
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        match self.struck {
            Some(Fault::ZeroSuccess) => return Answer::good(vec![0; length.min(in_len)]),
            Some(Fault::Echo) => {
                let tf = request.taskfile;
                let registers = Registers {
                    error: 0,
                    count: tf.count,
                    lba: tf.lba,
                    device: tf.device,
                    status: 0x50,
                };
                let data = cdb.iter().copied().cycle().take(length.min(in_len)).collect();
                return self.report(&request, registers, data);
            }
            _ => {}
        }
        let Inner::Ata(drive) = &mut self.inner else {
            return Answer::check(Code::INVALID_OPCODE);
        };
        if request.protocol < 2 {
            drive.hard_reset();
            return Answer::good(Vec::new());
        }
        let fits = match drive.nature(&request.taskfile) {
            Some(Nature::NonData) => request.protocol == 3,
            Some(Nature::PioIn) => request.protocol == 4,
            Some(Nature::PioOut) => request.protocol == 5,
            Some(Nature::DmaIn) => matches!(request.protocol, 6 | 10) && request.is_data_in(),
            Some(Nature::DmaOut) => matches!(request.protocol, 6 | 11) && !request.is_data_in(),
            // The drive will say so itself.
            None => true,
        } && drive
            .media_bytes(&request.taskfile)
            .is_none_or(|wanted| wanted == length as u64);
        // A zero count means 256 or 65536 sectors to the drive and no data to the bridge: that does not fit either.
        let outcome = if fits {
            drive.execute(&request.taskfile, data_out.get(..length).unwrap_or(data_out))
        } else {
            // What the bridge prepares does not match the command: the drive never gets to transfer.
            drive.execute(
                &Taskfile {
                    command: 0,
                    ..request.taskfile
                },
                &[],
            )
        };
        let mut data = outcome.data;
        data.truncate(length);
        self.spoil(&request, &mut data);
        self.report(&request, outcome.registers, data)
    }

    /// Checks that come before the drive sees anything.
    fn refuse(&self, request: &Request, out_len: usize, in_len: usize) -> Option<Answer> {
        let profile = &self.profile;
        let known = match request.protocol {
            0 | 1 | 3 | 4 | 5 => true,
            6 => profile.dma,
            10 | 11 => profile.udma,
            _ => false,
        };
        if !known {
            return Some(Answer::invalid_field(1));
        }
        if request.extend && !profile.ext {
            return Some(Answer::invalid_field(1));
        }
        let length_source = request.flags & 0x03;
        let carries = out_len > 0 || in_len > 0;
        if (length_source == 0) == carries && request.protocol >= 2 {
            return Some(Answer::invalid_field(2));
        }
        let wrong_way = match request.protocol {
            4 | 10 => !request.is_data_in() || out_len > 0,
            5 | 11 => request.is_data_in() || in_len > 0,
            6 if request.is_data_in() => out_len > 0,
            6 => in_len > 0,
            3 => length_source != 0,
            _ => false,
        };
        if wrong_way {
            return Some(Answer::invalid_field(2));
        }
        let in_transport = length_source == 3;
        if in_transport && profile.tpsiu == Tpsiu::IdentifyOnly && request.taskfile.command != 0xec {
            return Some(Answer::invalid_field(2));
        }
        if request.ck_cond() && profile.ckcond == CkCond::Refuse {
            return Some(Answer::invalid_field(2));
        }
        None
    }

    /// Faults that alter good data.
    fn spoil(&self, request: &Request, data: &mut Vec<u8>) {
        let identify = request.taskfile.command == 0xec;
        match self.struck {
            Some(Fault::Short) => data.truncate(data.len() / 2),
            Some(Fault::Swapped) if identify => {
                for pair in data.chunks_exact_mut(2) {
                    pair.reverse();
                }
            }
            Some(Fault::BadChecksum) if identify || request.taskfile.command == 0xb0 => {
                for sector in data.chunks_exact_mut(512) {
                    if let Some(last) = sector.last_mut() {
                        *last = last.wrapping_add(0x5a);
                    }
                }
            }
            _ => {}
        }
    }

    /// Status and sense for a finished taskfile.
    fn report(&mut self, request: &Request, registers: Registers, data: Vec<u8>) -> Answer {
        self.last = Some((registers, request.extend));
        let format = self.profile.sense;
        if registers.failed() {
            let code = Code::from_registers(&registers);
            return Answer {
                status: 0x02,
                sense: sense::pass_through(code, &registers, request.extend, format),
                data,
                ..Answer::good(Vec::new())
            };
        }
        if !request.ck_cond() || self.profile.ckcond == CkCond::Ignore {
            return Answer::good(data);
        }
        let shown = if self.profile.ckcond == CkCond::Empty {
            Registers::default()
        } else {
            registers
        };
        Answer {
            status: 0x02,
            sense: sense::pass_through(Code::PASS_THROUGH_INFORMATION, &shown, request.extend, format),
            data,
            ..Answer::good(Vec::new())
        }
    }

    fn response_information(&self, request: &Request) -> Answer {
        let works = match self.profile.rri {
            Rri::Absent => false,
            Rri::Any => true,
            Rri::Tdir | Rri::TdirNoExtend => request.is_data_in(),
        };
        if !works {
            return Answer::invalid_field(1);
        }
        let (registers, extend) = self.last.unwrap_or_default();
        let extend = extend && self.profile.rri != Rri::TdirNoExtend;
        Answer::good(sense::status_return(&registers, extend).to_vec())
    }
}
