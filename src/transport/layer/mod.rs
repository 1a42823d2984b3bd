//! Wrappers that are transports themselves, so that one stack runs traced, recorded, replayed or guarded.

/// Those methods of a wrapper that only pass the call on to `self.inner`.
macro_rules! pass_on {
    ($($method:ident),*) => { $(pass_on!(@ $method);)* };
    (@ device) => {
        fn device(&self) -> &str {
            self.inner.device()
        }
    };
    (@ clock) => {
        fn clock(&self) -> $crate::time::SharedClock {
            self.inner.clock()
        }
    };
    (@ limits) => {
        fn limits(&self) -> $crate::transport::Limits {
            self.inner.limits()
        }
    };
    (@ reap) => {
        fn reap(
            &mut self,
            wait: std::time::Duration,
        ) -> Result<Option<($crate::transport::Tag, $crate::transport::Completion)>, $crate::transport::TransportError>
        {
            self.inner.reap(wait)
        }
    };
    (@ cancel) => {
        fn cancel(&mut self, tag: $crate::transport::Tag) -> Result<(), $crate::transport::TransportError> {
            self.inner.cancel(tag)
        }
    };
    (@ recover) => {
        fn recover(&mut self, how: $crate::transport::Recovery) -> Result<(), $crate::transport::TransportError> {
            self.inner.recover(how)
        }
    };
}

pub mod count;
pub mod guard;
pub mod name;
pub mod record;
pub mod replay;
pub mod trace;
pub mod xchg;
