//! The command-line tool.

pub mod decode;
