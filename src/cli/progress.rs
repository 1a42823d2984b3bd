//! Signs of life on stderr while a slow device is awaited; nothing when stderr is no terminal or commands are traced.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::text;

/// Spins until dropped.
pub(super) struct Spinner(ProgressBar);

impl Spinner {
    /// Says what is being done.
    pub fn start(what: &str, verbose: u8) -> Self {
        if verbose > 0 {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::new_spinner();
        if !bar.is_hidden() {
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
                bar.set_style(style);
            }
            bar.set_message(text::for_terminal(what));
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        Self(bar)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
