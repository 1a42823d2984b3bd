//! Blocks of the medium by SCSI commands: how many there are, reading them, and writing where a permit allows it.

use std::cell::RefCell;

use crate::freemap::{ReadAt, ReadError};
use crate::scsi::capacity::Capacity;
use crate::scsi::cdb;
use crate::scsi::sense::Sense;
use crate::transport::{Command, Completion, Data, Status};

use super::{Drive, DriveError};

/// Most bytes of one READ or WRITE here: what every bridge and driver seen so far takes.
pub const TRANSFER_BYTES: u32 = 64 << 10;

/// How large a unit attention's patience is: a device tells each of its news once, and has few.
const ATTENTIONS: u32 = 4;

/// The size of a medium as the host sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// Number of logical blocks.
    pub blocks: u64,
    /// Bytes of one.
    pub block_bytes: u32,
    /// LBPME: the device says that it unmaps; `None` where READ CAPACITY (16) is not known.
    pub provisioning: Option<bool>,
    /// LBPRZ: and that unmapped blocks read as zeroes.
    pub reads_zeroes: bool,
}

impl Geometry {
    /// The size in bytes, if it fits into 64 bits.
    pub fn bytes(&self) -> Option<u64> {
        self.blocks.checked_mul(u64::from(self.block_bytes))
    }
}

impl Drive {
    /// READ CAPACITY (10) and (16). A unit attention is taken note of and asked past: nothing was written yet.
    ///
    /// # Errors
    /// The device does not tell how large it is, or the transport failed.
    pub fn geometry(&mut self) -> Result<Geometry, DriveError> {
        let short = self.ask(Command::data_in(cdb::read_capacity_10(), 8, self.timeout()))?;
        let short = short.data.unwrap_or_default();
        let short = Capacity::parse_10(&short).map_err(|source| self.garbage(source))?;
        let long = if short.needs_16 || self.bears_new_commands() {
            match self.ask(Command::data_in(cdb::read_capacity_16(32), 32, self.timeout())) {
                Ok(completion) => Capacity::parse_16(&completion.data.unwrap_or_default()).ok(),
                // Many bridges know only the short form.
                Err(DriveError::Answered { .. }) => None,
                Err(error) => return Err(error),
            }
        } else {
            None
        };
        let sizes = |c: &Capacity| (c.blocks, c.block_bytes);
        if let Some(long) = &long
            && !short.needs_16
            && sizes(long) != sizes(&short)
        {
            return Err(self.odd(format!(
                "READ CAPACITY (10) says {} blocks of {} bytes, (16) says {} of {}",
                short.blocks.unwrap_or_default(),
                short.block_bytes,
                long.blocks.unwrap_or_default(),
                long.block_bytes
            )));
        }
        let told = if short.needs_16 {
            long.as_ref()
        } else {
            Some(&short)
        };
        let blocks = told.and_then(|c| c.blocks);
        let (Some(told), Some(blocks)) = (told, blocks) else {
            return Err(self.odd("it does not tell how large it is".to_owned()));
        };
        if !matches!(told.block_bytes, 512 | 1024 | 2048 | 4096) {
            return Err(self.odd(format!("blocks of {} bytes are not understood", told.block_bytes)));
        }
        let flags = long.as_ref().and_then(|c| c.long.as_ref());
        Ok(Geometry {
            blocks,
            block_bytes: told.block_bytes,
            provisioning: flags.map(|f| f.provisioning),
            reads_zeroes: flags.is_some_and(|f| f.provisioning && f.reads_zeroes),
        })
    }

    /// Whether commands that plain sticks may choke on can be sent: a drive answers through the bridge, the kernel asked
    /// such things before, or the device claims SPC-3.
    fn bears_new_commands(&self) -> bool {
        matches!(self.access(), super::Access::Ata(_))
            || !self.facts().scsi.vpd_pages.is_empty()
            || self.inquiry().is_some_and(|i| i.version >= 5)
    }

    /// Reads `blocks` blocks of `block_bytes` from `first` on; `fua` asks for them past every cache.
    ///
    /// # Errors
    /// They cannot be read, or fewer came.
    pub fn read_blocks(
        &mut self,
        first: u64,
        blocks: u32,
        block_bytes: u32,
        fua: bool,
    ) -> Result<Vec<u8>, DriveError> {
        let want = blocks as usize * block_bytes as usize;
        let mut all = Vec::with_capacity(want);
        for (at, part) in parts(first, blocks, block_bytes) {
            let len = part as usize * block_bytes as usize;
            let command = Command::data_in(cdb::read(at, part, fua), len, self.timeout());
            let data = self.ask(command)?.data.unwrap_or_default();
            if data.len() != len {
                return Err(self.odd(format!(
                    "{} of {len} bytes came of block {at} and those after it",
                    data.len()
                )));
            }
            all.extend(data);
        }
        Ok(all)
    }

    /// Writes whole blocks of `block_bytes` from `first` on. The guard asks the permit.
    ///
    /// # Errors
    /// They are not permitted, or were not taken.
    pub fn write_blocks(&mut self, first: u64, data: &[u8], block_bytes: u32) -> Result<(), DriveError> {
        let blocks = u32::try_from(data.len() / block_bytes.max(1) as usize).unwrap_or(u32::MAX);
        let mut rest = data;
        for (at, part) in parts(first, blocks, block_bytes) {
            let Some((now, later)) = rest.split_at_checked(part as usize * block_bytes as usize) else {
                break;
            };
            rest = later;
            let _ = self.tell(Command::data_out(
                cdb::write(at, part),
                now.to_vec(),
                self.timeout(),
            ))?;
        }
        Ok(())
    }

    /// SYNCHRONIZE CACHE. Devices without a cache may not know it, which is as good.
    ///
    /// # Errors
    /// It failed.
    pub fn flush_cache(&mut self) -> Result<(), DriveError> {
        match self.tell(Command::non_data(cdb::synchronize_cache(), self.timeout())) {
            Err(DriveError::Answered {
                sense_key: Some(5), ..
            }) => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Sends a command that reads; GOOD is `Ok`. Unit attentions are asked past.
    ///
    /// # Errors
    /// [`DriveError::Answered`] for any other status.
    pub(super) fn ask(&mut self, command: Command) -> Result<Completion, DriveError> {
        let mut left = ATTENTIONS;
        loop {
            match self.tell(command.clone()) {
                Err(DriveError::Answered {
                    sense_key: Some(6), ..
                }) if left > 0 => {
                    self.attentions += 1;
                    left -= 1;
                }
                other => return other,
            }
        }
    }

    /// Sends a command once; GOOD is `Ok`. A unit attention is an error: what writes does not go on over a reset.
    ///
    /// # Errors
    /// [`DriveError::Answered`] for any other status.
    pub(super) fn tell(&mut self, command: Command) -> Result<Completion, DriveError> {
        let cdb = command.cdb;
        let writes = matches!(command.data, Data::Out(_));
        let completion = self.scsi(command)?;
        if completion.status == Status::GOOD {
            return Ok(completion);
        }
        let sense = Sense::parse(&completion.sense).ok();
        // A recovered error is a success that took pains.
        let least_key = u8::from(writes);
        if completion.status == Status::CHECK_CONDITION
            && sense
                .as_ref()
                .is_some_and(|s| !s.deferred && (least_key..=1).contains(&s.key))
        {
            return Ok(completion);
        }
        let what = match &sense {
            Some(sense) => format!(
                "{} {}{}",
                sense.key_name(),
                sense.code_triple(),
                sense.code_text().map(|t| format!(" ({t})")).unwrap_or_default()
            ),
            None => completion.status.to_string(),
        };
        Err(DriveError::Answered {
            device: self.name().to_owned(),
            command: cdb.name(),
            cdb,
            what,
            sense_key: sense.as_ref().map(|s| s.key),
        })
    }

    pub(super) fn odd(&self, what: String) -> DriveError {
        DriveError::Odd {
            device: self.name().to_owned(),
            what,
        }
    }

    fn garbage(&self, source: crate::wire::WireError) -> DriveError {
        DriveError::Garbage {
            device: self.name().to_owned(),
            source,
        }
    }
}

/// Cuts a run of blocks into transfers.
fn parts(first: u64, blocks: u32, block_bytes: u32) -> impl Iterator<Item = (u64, u32)> {
    let most = (TRANSFER_BYTES / block_bytes.max(1)).max(1);
    (0..blocks.div_ceil(most)).map(move |i| {
        let done = i * most;
        (first.saturating_add(u64::from(done)), (blocks - done).min(most))
    })
}

/// Chunks that [`Medium`] keeps.
const CACHED_CHUNKS: usize = 64;

struct Chunk {
    index: u64,
    bytes: Vec<u8>,
}

/// The medium of a drive as bytes at addresses, for readers of file systems. Small reads near each other cost one command.
pub struct Medium<'a> {
    drive: RefCell<&'a mut Drive>,
    geometry: Geometry,
    chunks: RefCell<Vec<Chunk>>,
    next: RefCell<usize>,
    /// What the first failure was, for whoever wants more than its words.
    error: RefCell<Option<DriveError>>,
}

impl<'a> Medium<'a> {
    /// The whole medium.
    pub fn new(drive: &'a mut Drive, geometry: Geometry) -> Self {
        Self {
            drive: RefCell::new(drive),
            geometry,
            chunks: RefCell::default(),
            next: RefCell::default(),
            error: RefCell::default(),
        }
    }

    /// The first failure of the device, if there was any.
    pub fn into_error(self) -> Option<DriveError> {
        self.error.into_inner()
    }

    fn chunk_bytes(&self) -> u64 {
        u64::from(TRANSFER_BYTES.max(self.geometry.block_bytes))
    }

    fn fetch(&self, index: u64) -> Result<Vec<u8>, DriveError> {
        let block_bytes = self.geometry.block_bytes;
        let per_chunk = self.chunk_bytes() / u64::from(block_bytes.max(1));
        let first = index.saturating_mul(per_chunk);
        let blocks = self.geometry.blocks.saturating_sub(first).min(per_chunk);
        self.drive.borrow_mut().read_blocks(
            first,
            u32::try_from(blocks).unwrap_or(u32::MAX),
            block_bytes,
            false,
        )
    }

    fn copy(&self, index: u64, from: usize, to: &mut [u8]) -> Result<(), DriveError> {
        let mut chunks = self.chunks.borrow_mut();
        let place = match chunks.iter().position(|c| c.index == index) {
            Some(place) => place,
            None => {
                let bytes = self.fetch(index)?;
                if chunks.len() < CACHED_CHUNKS {
                    chunks.push(Chunk { index, bytes });
                    chunks.len() - 1
                } else {
                    let mut next = self.next.borrow_mut();
                    let place = *next % CACHED_CHUNKS;
                    *next += 1;
                    if let Some(old) = chunks.get_mut(place) {
                        *old = Chunk { index, bytes };
                    }
                    place
                }
            }
        };
        let source = chunks
            .get(place)
            .and_then(|c| c.bytes.get(from..from.checked_add(to.len())?));
        match source {
            Some(source) => {
                to.copy_from_slice(source);
                Ok(())
            }
            None => Err(self
                .drive
                .borrow()
                .odd(format!("too few bytes came of chunk {index}"))),
        }
    }
}

impl ReadAt for Medium<'_> {
    fn size_bytes(&self) -> u64 {
        self.geometry.bytes().unwrap_or(u64::MAX)
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        let end = offset_bytes.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.size_bytes()) {
            return Err(ReadError::past_end(offset_bytes, buffer.len(), self.size_bytes()));
        }
        let chunk_bytes = self.chunk_bytes();
        let len_bytes = buffer.len();
        let mut at = offset_bytes;
        let mut rest = buffer;
        while !rest.is_empty() {
            let index = at / chunk_bytes;
            let from = at % chunk_bytes;
            let now = usize::try_from(chunk_bytes - from)
                .unwrap_or(usize::MAX)
                .min(rest.len());
            let (part, later) = rest.split_at_mut(now);
            if let Err(error) = self.copy(index, usize::try_from(from).unwrap_or(usize::MAX), part) {
                let why = error.to_string();
                self.error.borrow_mut().get_or_insert(error);
                return Err(ReadError {
                    offset_bytes,
                    len_bytes,
                    why,
                });
            }
            rest = later;
            at += now as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::{Care, OpenOptions};

    #[test]
    fn a_medium_reads_what_the_blocks_hold() {
        let mut drive = Drive::open("sim:ssd,seed=3", &OpenOptions::default(), Care::MayWake).unwrap();
        let geometry = drive.geometry().unwrap();
        assert_eq!(geometry.block_bytes, 512);
        let last = geometry.blocks - 1;
        let block = drive.read_blocks(last, 1, 512, false).unwrap();
        let many = drive.read_blocks(0, 300, 512, false).unwrap();
        assert_eq!(many.len(), 300 * 512);
        assert!(drive.read_blocks(last, 2, 512, false).is_err());
        assert!(matches!(
            drive.write_blocks(0, &[0; 512], 512),
            Err(DriveError::Transport(_))
        ));
        let sent = drive.commands_sent();
        let size = geometry.bytes().unwrap();
        let medium = Medium::new(&mut drive, geometry);
        let mut buffer = vec![0; 700];
        medium.read_at(65_000, &mut buffer).unwrap();
        assert_eq!(buffer, many[65_000..65_700]);
        let mut tail = vec![0; 512];
        medium.read_at(size - 512, &mut tail).unwrap();
        assert_eq!(tail, block);
        medium.read_at(65_100, &mut buffer).unwrap();
        assert!(medium.read_at(size - 511, &mut tail).is_err());
        assert!(
            medium.into_error().is_none(),
            "past the end is no failure of the device"
        );
        assert_eq!(drive.commands_sent(), sent + 3, "two chunks and the last one");
    }
}
