//! One bulk endpoint: transfers that wait for it, and its halt.

use std::collections::VecDeque;

use super::{Finished, Transfer, TransferStatus};

/// A bulk endpoint.
#[derive(Debug)]
pub struct Pipe {
    address: u8,
    waiting: VecDeque<Transfer>,
    halted: bool,
}

impl Pipe {
    /// Free, with nothing waiting.
    pub fn new(address: u8) -> Self {
        Self {
            address,
            waiting: VecDeque::new(),
            halted: false,
        }
    }

    /// bEndpointAddress.
    pub fn address(&self) -> u8 {
        self.address
    }

    /// Puts a transfer at the end.
    pub fn push(&mut self, transfer: Transfer) {
        self.waiting.push_back(transfer);
    }

    /// The oldest transfer, unless the pipe is halted.
    pub fn take(&mut self) -> Option<Transfer> {
        if self.halted {
            None
        } else {
            self.waiting.pop_front()
        }
    }

    /// The oldest transfer of a stream, unless the pipe is halted.
    pub fn take_stream(&mut self, stream: u32) -> Option<Transfer> {
        if self.halted {
            return None;
        }
        let place = self.waiting.iter().position(|t| t.stream == stream)?;
        self.waiting.remove(place)
    }

    /// The oldest transfer of a stream, left where it is.
    pub fn peek_stream(&self, stream: u32) -> Option<&Transfer> {
        self.waiting.iter().find(|t| t.stream == stream)
    }

    /// Whether anything waits.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// How much waits.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Takes one back by its name.
    pub fn cancel(&mut self, id: u64) -> Option<Transfer> {
        let place = self.waiting.iter().position(|t| t.id == id)?;
        self.waiting.remove(place)
    }

    /// Takes all back.
    pub fn drain(&mut self) -> impl Iterator<Item = Transfer> + '_ {
        self.waiting.drain(..)
    }

    /// Halts it: what waits and what comes is stalled.
    pub fn halt(&mut self) {
        self.halted = true;
    }

    /// CLEAR_FEATURE(ENDPOINT_HALT).
    pub fn clear(&mut self) {
        self.halted = false;
    }

    /// Whether it is halted.
    pub fn halted(&self) -> bool {
        self.halted
    }

    /// Stalls what waits at a halted pipe.
    pub fn refuse_if_halted(&mut self, finished: &mut VecDeque<Finished>) {
        if self.halted {
            finished.extend(self.waiting.drain(..).map(|t| ended(&t, TransferStatus::Stall)));
        }
    }
}

/// What a protocol's state machine does next.
pub enum Step {
    On,
    Wait,
    Leave,
}

/// A transfer that ends without moving anything.
pub fn ended(transfer: &Transfer, status: TransferStatus) -> Finished {
    Finished {
        id: transfer.id,
        status,
        data: Vec::new(),
        moved_bytes: 0,
    }
}

/// How transfers end.
pub struct PipeEnd;

impl PipeEnd {
    /// All of an OUT transfer was taken.
    pub fn taken(transfer: &Transfer) -> Finished {
        Finished {
            moved_bytes: transfer.out.len(),
            ..ended(transfer, TransferStatus::Done)
        }
    }

    /// This was sent in an IN transfer.
    pub fn sent(transfer: &Transfer, data: Vec<u8>) -> Finished {
        if data.len() > transfer.in_len {
            return Self::babble(transfer);
        }
        Finished {
            moved_bytes: data.len(),
            data,
            ..ended(transfer, TransferStatus::Done)
        }
    }

    /// More was sent than there is room for.
    pub fn babble(transfer: &Transfer) -> Finished {
        ended(transfer, TransferStatus::Babble)
    }
}
