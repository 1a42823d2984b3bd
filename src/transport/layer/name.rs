//! Names of commands, for messages and traces.

/// What people call this command.
pub fn command_name(cdb: &[u8]) -> String {
    format!("command {:02x}h", cdb.first().copied().unwrap_or_default())
}
