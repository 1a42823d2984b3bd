//! What a session needs of a device. A trait, so that sessions are tested with a scripted one.

use std::time::Duration;

use crate::sim::Target;
use crate::sim::usb::{Endpoint, Finished, Identity, Interface, Transfer, UsbDevice};

/// A USB device as its carriers use it; each method as [`UsbDevice`] documents it.
pub trait Device {
    fn target(&mut self) -> &mut Target;
    fn identity(&self) -> Identity;
    fn interfaces(&self) -> Vec<Interface>;
    fn endpoints(&self) -> Vec<Endpoint>;
    fn plugged(&self) -> bool;
    fn unplug(&mut self, now: Duration);
    fn plug(&mut self, now: Duration);
    fn bus_reset(&mut self, now: Duration);
    fn set_configuration(&mut self, value: u8, now: Duration) -> bool;
    fn configuration(&self) -> u8;
    fn set_interface(&mut self, interface: u8, setting: u8, now: Duration) -> bool;
    fn setting(&self, interface: u8) -> Option<u8>;
    fn submit(&mut self, transfer: Transfer, now: Duration);
    fn cancel(&mut self, id: u64, now: Duration) -> bool;
    fn finished(&mut self, now: Duration) -> Option<Finished>;
    fn next_due(&self) -> Option<Duration>;
}

impl Device for UsbDevice {
    fn target(&mut self) -> &mut Target {
        self.target_mut()
    }

    fn identity(&self) -> Identity {
        Self::identity(self)
    }

    fn interfaces(&self) -> Vec<Interface> {
        Self::interfaces(self)
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        Self::endpoints(self)
    }

    fn plugged(&self) -> bool {
        Self::plugged(self)
    }

    fn unplug(&mut self, now: Duration) {
        Self::unplug(self, now);
    }

    fn plug(&mut self, now: Duration) {
        Self::plug(self, now);
    }

    fn bus_reset(&mut self, now: Duration) {
        Self::bus_reset(self, now);
    }

    fn set_configuration(&mut self, value: u8, now: Duration) -> bool {
        Self::set_configuration(self, value, now)
    }

    fn configuration(&self) -> u8 {
        Self::configuration(self)
    }

    fn set_interface(&mut self, interface: u8, setting: u8, now: Duration) -> bool {
        Self::set_interface(self, interface, setting, now)
    }

    fn setting(&self, interface: u8) -> Option<u8> {
        Self::setting(self, interface)
    }

    fn submit(&mut self, transfer: Transfer, now: Duration) {
        Self::submit(self, transfer, now);
    }

    fn cancel(&mut self, id: u64, now: Duration) -> bool {
        Self::cancel(self, id, now)
    }

    fn finished(&mut self, now: Duration) -> Option<Finished> {
        Self::finished(self, now)
    }

    fn next_due(&self) -> Option<Duration> {
        Self::next_due(self)
    }
}
