//! Writes every exchange to a `.xchg` file (`--record`).

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use super::xchg::Exchange;
use crate::transport::{Cdb, Command, Completion, Data, Tag, Transport, TransportError};

/// A transport that records. The file holds device identities; it is the user's to share.
pub struct Record<T, W> {
    inner: T,
    sink: W,
    in_flight: BTreeMap<Tag, (Cdb, Data)>,
    failure: Option<std::io::ErrorKind>,
}

impl<T: Transport, W: Write + Send> Record<T, W> {
    /// Wraps `inner`; `facts_json` is what was known before the first command.
    ///
    /// # Errors
    /// The header cannot be written.
    pub fn new(inner: T, mut sink: W, facts_json: &str) -> std::io::Result<Self> {
        writeln!(
            sink,
            "# drivethru exchange, version 1. It holds serial numbers: look before you share it."
        )?;
        writeln!(sink, "@ facts {facts_json}\n")?;
        Ok(Self {
            inner,
            sink,
            in_flight: BTreeMap::new(),
            failure: None,
        })
    }

    fn write(&mut self, exchange: Option<Exchange>) {
        let Some(exchange) = exchange else { return };
        let written = self
            .sink
            .write_all(exchange.to_text().as_bytes())
            .and_then(|()| self.sink.flush());
        if let (Err(error), None) = (&written, self.failure) {
            self.failure = Some(error.kind());
            tracing::warn!("the recording is incomplete: {error}");
        }
    }
}

impl<T: Transport, W: Write + Send> Transport for Record<T, W> {
    pass_on!(device, clock, limits, cancel, recover);

    fn submit(&mut self, command: Command) -> Result<Tag, TransportError> {
        let (cdb, data) = (command.cdb, command.data.clone());
        let start = self.inner.clock().now();
        match self.inner.submit(command) {
            Ok(tag) => {
                self.in_flight.insert(tag, (cdb, data));
                Ok(tag)
            }
            Err(error) => {
                let elapsed = self.inner.clock().now().saturating_sub(start);
                self.write(Exchange::from_result(cdb, data, &Err(error.clone()), elapsed));
                Err(error)
            }
        }
    }
    fn reap(&mut self, wait: Duration) -> Result<Option<(Tag, Completion)>, TransportError> {
        let reaped = self.inner.reap(wait)?;
        if let Some((tag, completion)) = &reaped
            && let Some((cdb, data)) = self.in_flight.remove(tag)
        {
            self.write(Exchange::from_result(
                cdb,
                data,
                &Ok(completion.clone()),
                completion.elapsed,
            ));
        }
        Ok(reaped)
    }
}
