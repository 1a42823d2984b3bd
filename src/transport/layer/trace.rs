//! Shows every command and its answer (`-v`).

use std::io::Write;
use std::time::Duration;

use crate::text;
use crate::transport::{Command, Completion, Data, Status, Tag, Transport, TransportError};

/// A transport that writes two lines for each command to `sink`: what went out, and what came back.
pub struct Trace<T, W> {
    inner: T,
    sink: W,
    dump_data: bool,
}

impl<T: Transport, W: Write + Send> Trace<T, W> {
    /// Wraps `inner`; with `dump_data` the payloads are shown too.
    pub fn new(inner: T, sink: W, dump_data: bool) -> Self {
        Self {
            inner,
            sink,
            dump_data,
        }
    }

    fn line(&mut self, text: &str) {
        // A trace that cannot be written must not disturb the device work that it shows.
        let _ = writeln!(self.sink, "{text}");
    }

    fn dump(&mut self, bytes: &[u8]) {
        if !self.dump_data {
            return;
        }
        for (row, chunk) in bytes.chunks(16).enumerate() {
            let ascii: String = chunk
                .iter()
                .map(|&b| {
                    if (0x20..0x7f).contains(&b) {
                        char::from(b)
                    } else {
                        '.'
                    }
                })
                .collect();
            self.line(&format!(
                "    {:04x}: {:<47}  {ascii}",
                row * 16,
                text::hex(chunk)
            ));
        }
    }
}

impl<T: Transport, W: Write + Send> Transport for Trace<T, W> {
    pass_on!(device, clock, limits, cancel, recover);

    fn submit(&mut self, command: Command) -> Result<Tag, TransportError> {
        let phase = match &command.data {
            Data::None => "no data".to_owned(),
            Data::In { len_bytes } => format!("in {len_bytes}"),
            Data::Out(buffer) => format!("out {}", buffer.len()),
        };
        let device = text::for_terminal(self.inner.device());
        self.line(&format!(
            "{device}: > {} [{}] {phase}",
            command.cdb.name(),
            command.cdb
        ));
        if let Data::Out(buffer) = &command.data {
            let copy = buffer.clone();
            self.dump(&copy);
        }
        let result = self.inner.submit(command);
        if let Err(error) = &result {
            self.line(&format!("{device}: ! {error}"));
        }
        result
    }
    fn reap(&mut self, wait: Duration) -> Result<Option<(Tag, Completion)>, TransportError> {
        let result = self.inner.reap(wait);
        let device = text::for_terminal(self.inner.device());
        match &result {
            Ok(Some((_, completion))) => {
                let mut line = format!(
                    "{device}: < {}, {} bytes, {} us",
                    completion.status,
                    completion.transferred_bytes,
                    completion.elapsed.as_micros()
                );
                if completion.status != Status::GOOD || !completion.sense.is_empty() {
                    line.push_str(&format!(", sense [{}]", text::hex(&completion.sense)));
                }
                self.line(&line);
                if let Some(data) = &completion.data {
                    let copy = data.clone();
                    self.dump(&copy);
                }
            }
            Ok(None) => {}
            Err(error) => self.line(&format!("{device}: ! {error}")),
        }
        result
    }
}
