//! A known number of bytes that arrives in pieces.

use super::ProtocolError;

/// Memory grows with what has arrived: at first so much, then twofold.
const STEP_BYTES: usize = 1 << 20;

/// Collects `want` bytes.
#[derive(Debug)]
pub struct Gather {
    bytes: Vec<u8>,
    have: usize,
    want: usize,
}

impl Gather {
    /// Waits for `want` bytes.
    pub fn new(want: usize) -> Self {
        Self {
            bytes: vec![0; want.min(STEP_BYTES)],
            have: 0,
            want,
        }
    }

    /// Where the next bytes go; empty once all are there.
    pub fn space(&mut self) -> &mut [u8] {
        if self.have == self.bytes.len() && self.have < self.want {
            let len = self.have.saturating_mul(2).clamp(1, self.want);
            self.bytes.resize(len, 0);
        }
        self.bytes.get_mut(self.have..).unwrap_or_default()
    }

    /// `count` bytes of the space hold data now.
    pub fn filled(&mut self, count: usize) {
        self.have = self.have.saturating_add(count).min(self.bytes.len());
    }

    /// Whether all are there.
    pub fn is_full(&self) -> bool {
        self.have >= self.want
    }

    /// The bytes that are there.
    pub fn take(&mut self) -> Vec<u8> {
        self.bytes.truncate(self.have);
        self.have = 0;
        self.want = 0;
        std::mem::take(&mut self.bytes)
    }
}

/// A protocol that is read out of a stream of bytes in stages, each of which waits for a known number of them.
pub trait Decode {
    /// What comes out.
    type Packet;
    /// What a host begins with, in a word.
    const FIRST: &str;
    /// Whether this is it.
    fn is_first(packet: &Self::Packet) -> bool;
    /// What the present stage waits for.
    fn gather(&mut self) -> &mut Gather;
    /// Whether an error has ended it.
    fn is_broken(&self) -> bool;
    /// Ends it.
    fn break_off(&mut self);
    /// All that the present stage waits for is there: on to the next one.
    ///
    /// # Errors
    /// What came breaks the protocol.
    fn next_stage(&mut self) -> Result<Option<Self::Packet>, ProtocolError>;

    /// Where the next bytes go. Empty only after an error.
    fn space(&mut self) -> &mut [u8] {
        self.gather().space()
    }

    /// `count` bytes were put into the space.
    ///
    /// # Errors
    /// What came breaks the protocol. Nothing can be read after that.
    fn filled(&mut self, count: usize) -> Result<Option<Self::Packet>, ProtocolError> {
        if self.is_broken() {
            return Err(ProtocolError::Broken);
        }
        self.gather().filled(count);
        while self.gather().is_full() {
            match self.next_stage() {
                Ok(None) => {}
                Ok(Some(packet)) => return Ok(Some(packet)),
                Err(error) => {
                    self.break_off();
                    *self.gather() = Gather::new(0);
                    return Err(error);
                }
            }
        }
        Ok(None)
    }

    /// Takes bytes that are already in memory.
    ///
    /// # Errors
    /// As [`Decode::filled`].
    fn feed(&mut self, mut bytes: &[u8], packets: &mut Vec<Self::Packet>) -> Result<(), ProtocolError> {
        while !bytes.is_empty() {
            let count = copy(self.space(), bytes);
            packets.extend(self.filled(count)?);
            bytes = bytes.get(count..).unwrap_or_default();
        }
        Ok(())
    }
}

/// Copies as much of `bytes` as `space` has room for; returns how much.
pub fn copy(space: &mut [u8], bytes: &[u8]) -> usize {
    let count = space.len().min(bytes.len());
    if let (Some(to), Some(from)) = (space.get_mut(..count), bytes.get(..count)) {
        to.copy_from_slice(from);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_what_arrived() {
        let mut gather = Gather::new(64 << 20);
        assert_eq!(gather.space().len(), STEP_BYTES);
        gather.filled(10);
        assert_eq!(gather.space().len(), STEP_BYTES - 10);
        gather.filled(usize::MAX);
        assert!(!gather.is_full());
        assert_eq!(gather.space().len(), STEP_BYTES);
        while !gather.is_full() {
            let room = gather.space().len();
            gather.filled(room);
        }
        assert!(gather.space().is_empty());
        assert_eq!(gather.take().len(), 64 << 20);
        assert!(Gather::new(0).is_full());
    }
}
