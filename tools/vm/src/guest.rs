//! A running guest: commands in, output out.

use std::cell::RefCell;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::frame::{self, Message};
use crate::vm::{Qemu, tail};

/// Beyond a command's own time-out: the guest may need this long to kill it and answer. A command stuck in SG_IO dies only
/// when the kernel has given up on the device.
const ANSWER_GRACE: Duration = Duration::from_secs(45);
/// For requests that run nothing.
const SHORT: Duration = Duration::from_secs(30);

/// A booted guest. Dropping it kills it.
pub struct Guest {
    inner: RefCell<Inner>,
    release: String,
    boot_time: Duration,
    guest_time: (Duration, Duration),
}

struct Inner {
    qemu: Qemu,
    port: UnixStream,
    /// Set when the guest is gone or out of step: nothing more is to be had from it.
    lost: bool,
}

/// What a command left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its exit code, or 128 plus the signal that ended it.
    pub status: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// From before its fork to after its exit, by the guest's own clock.
    pub elapsed: Duration,
    /// Processor time in user mode, with its children's.
    pub user_time: Duration,
    /// Processor time in the kernel, with its children's.
    pub system_time: Duration,
}

impl Output {
    /// Standard output as text.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// A disk as the guest's kernel knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestDisk {
    /// Its node: `/dev/sda`.
    pub node: String,
    /// Its SCSI address, host, channel, target and LUN; an NVMe drive has none.
    pub address: Option<String>,
    /// The serials that the kernel has for it: of the unit, of the USB bridge.
    pub serials: Vec<String>,
}

impl GuestDisk {
    /// The number of the SCSI host.
    pub fn host(&self) -> Option<u64> {
        self.address.as_deref()?.split(':').next()?.parse().ok()
    }
}

/// A line of the kernel's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelMessage {
    /// Severity: 3 is an error, 4 a warning, 6 news. A number, not a word, since lower is worse.
    pub level: u8,
    /// Without time stamp.
    pub text: String,
}

impl Guest {
    /// Waits for the guest's first message.
    pub(crate) fn first_words(
        qemu: Qemu,
        port: UnixStream,
        timeout: Duration,
        started: Instant,
    ) -> Result<(Self, Message), Error> {
        let mut inner = Inner {
            qemu,
            port,
            lost: false,
        };
        let hello = inner.receive(timeout, "it to boot")?;
        let us = |index| Duration::from_micros(hello.number(index).unwrap_or(0));
        let guest = Self {
            inner: RefCell::new(inner),
            release: hello.text(0),
            boot_time: started.elapsed(),
            guest_time: (us(2), us(3)),
        };
        Ok((guest, hello))
    }

    /// The kernel's release.
    pub fn release(&self) -> &str {
        &self.release
    }

    /// From the start of [`crate::Builder::boot`] until the first command could be run.
    pub fn boot_time(&self) -> Duration {
        self.boot_time
    }

    /// The guest's own clock when its init started, and when it was ready for commands.
    pub fn guest_time(&self) -> (Duration, Duration) {
        self.guest_time
    }

    /// Runs a shell command with the host's programs; it is killed after `timeout`.
    ///
    /// `/tmp` and `/run` (where `HOME` is) can be written to and last as long as the guest.
    pub fn run(&self, command: &str, timeout: Duration) -> Result<Output, Error> {
        self.run_args(&["/bin/sh", "-c", command], timeout)
    }

    /// Runs a program without a shell in between.
    pub fn run_args(&self, arguments: &[&str], timeout: Duration) -> Result<Output, Error> {
        Ok(self.run_message("", arguments, timeout)?.0)
    }

    /// Like [`Self::run`], and returns the CDBs that the kernel handed to this disk's SCSI host meanwhile, by the trace event
    /// `scsi_dispatch_cmd_start`: what reached the bridge, whoever sent it.
    pub fn run_counted(
        &self,
        disk: &GuestDisk,
        command: &str,
        timeout: Duration,
    ) -> Result<(Output, Vec<Vec<u8>>), Error> {
        let host = disk
            .host()
            .ok_or_else(|| Error::Usage(format!("{} is not a SCSI disk", disk.node)))?;
        let (output, trace) = self.run_message(&host.to_string(), &["/bin/sh", "-c", command], timeout)?;
        let byte = |word: &str| {
            u8::from_str_radix(word, 16).map_err(|_| Error::Protocol(format!("not a CDB in hex: {trace:?}")))
        };
        let cdbs = trace
            .lines()
            .map(|line| line.split_whitespace().map(byte).collect());
        Ok((output, cdbs.collect::<Result<_, _>>()?))
    }

    fn run_message(
        &self,
        counted: &str,
        arguments: &[&str],
        timeout: Duration,
    ) -> Result<(Output, String), Error> {
        let command = arguments.join(" ");
        let milliseconds = timeout.as_millis().to_string();
        let fields = [milliseconds.as_str(), counted]
            .into_iter()
            .chain(arguments.iter().copied());
        let answer = self.ask(
            &Message::new(frame::RUN, fields),
            timeout + ANSWER_GRACE,
            &command,
        )?;
        let number = |index| {
            answer
                .number(index)
                .ok_or_else(|| Error::Protocol(format!("answer without field {index}")))
        };
        let [timed_out, elapsed, user, system] = [number(1)?, number(2)?, number(3)?, number(4)?];
        let output = Output {
            status: i32::try_from(number(0)?).unwrap_or(i32::MAX),
            stdout: answer.fields.get(5).cloned().unwrap_or_default(),
            stderr: answer.fields.get(6).cloned().unwrap_or_default(),
            elapsed: Duration::from_nanos(elapsed),
            user_time: Duration::from_micros(user),
            system_time: Duration::from_micros(system),
        };
        if timed_out != 0 {
            return Err(Error::CommandTimedOut {
                command,
                after: timeout,
                output: Box::new(output),
            });
        }
        Ok((output, answer.text(7)))
    }

    /// The disks, in the order of their names.
    pub fn disks(&self) -> Result<Vec<GuestDisk>, Error> {
        let listing = self
            .ask(&Message::new(frame::DISKS, [""; 0]), SHORT, "the list of disks")?
            .text(0);
        Ok(listing.lines().filter_map(parse_disk).collect())
    }

    /// The disk with this serial, be it the unit's or that of the USB bridge.
    pub fn find_disk(&self, serial: &str) -> Result<GuestDisk, Error> {
        let disks = self.disks()?;
        let listing: Vec<String> = disks.iter().map(|disk| format!("{disk:?}")).collect();
        disks
            .into_iter()
            .find(|disk| disk.serials.iter().any(|known| known == serial))
            .ok_or_else(|| Error::NoSuchDisk {
                serial: serial.to_owned(),
                disks: listing.join("\n"),
            })
    }

    /// The kernel's log.
    pub fn dmesg(&self) -> Result<Vec<KernelMessage>, Error> {
        let log = self
            .ask(&Message::new(frame::DMESG, [""; 0]), SHORT, "the kernel's log")?
            .text(0);
        Ok(log.lines().filter_map(parse_kernel_message).collect())
    }

    /// Loads a module from a file of the host.
    pub fn insert_module(&self, file: &Path, parameters: &str) -> Result<(), Error> {
        let path = Self::host_path(file);
        self.ask(
            &Message::new(frame::INSMOD, [path.as_str(), parameters]),
            SHORT,
            &path,
        )
        .map(drop)
    }

    /// How a file of the host is called in the guest. (The host's own names work as well, but for what is in `/tmp`, `/run`,
    /// `/var`, `/dev`, `/proc` and `/sys`.) Links in the path are followed here, if it exists.
    pub fn host_path(path: &Path) -> String {
        let real = path
            .canonicalize()
            .or_else(|_| std::path::absolute(path))
            .unwrap_or_else(|_| path.to_owned());
        format!("/hostroot{}", real.display())
    }

    /// Everything on the guest's console so far.
    pub fn console(&self) -> String {
        self.inner.borrow().qemu.console()
    }

    /// Switches the guest off and waits for QEMU's end.
    pub fn shutdown(self) -> Result<(), Error> {
        let mut inner = self.inner.into_inner();
        if !inner.lost {
            let _ = Message::new(frame::POWEROFF, [""; 0]).write_to(&mut inner.port);
        }
        match inner.qemu.wait(SHORT) {
            Some(status) if status.success() => Ok(()),
            Some(_) => Err(inner.qemu.post_mortem()),
            None => Err(inner.silent(SHORT, "its power-off")),
        }
    }

    fn ask(&self, request: &Message, timeout: Duration, what: &str) -> Result<Message, Error> {
        let mut inner = self.inner.borrow_mut();
        if inner.lost {
            return Err(inner.qemu.post_mortem());
        }
        if request.write_to(&mut inner.port).is_err() {
            inner.lost = true;
            return Err(inner.qemu.post_mortem());
        }
        let answer = inner.receive(timeout, what)?;
        match answer.kind {
            frame::DONE | frame::TEXT => Ok(answer),
            frame::FAILED => Err(Error::Refused {
                request: what.to_owned(),
                why: answer.text(0),
            }),
            kind => Err(Error::Protocol(format!("answer of kind {kind}"))),
        }
    }
}

impl Inner {
    fn receive(&mut self, timeout: Duration, what: &str) -> Result<Message, Error> {
        let reader = BeforeDeadline {
            port: &self.port,
            deadline: Instant::now() + timeout,
        };
        match Message::read_from(reader) {
            Ok(message) => Ok(message),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                self.lost = true;
                Err(self.silent(timeout, what))
            }
            Err(_) => {
                self.lost = true;
                Err(self.qemu.post_mortem())
            }
        }
    }

    fn silent(&mut self, after: Duration, what: &str) -> Error {
        self.qemu.kill();
        Error::GuestSilent {
            waiting_for: what.to_owned(),
            after,
            console: tail(&self.qemu.console()),
        }
    }
}

/// Reads until a point in time, however many pieces come.
struct BeforeDeadline<'a> {
    port: &'a UnixStream,
    deadline: Instant,
}

impl Read for BeforeDeadline<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.port.set_read_timeout(Some(left))?;
        let mut port = self.port;
        port.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
            _ => error,
        })
    }
}

/// `sda<TAB>2:0:0:0<TAB>SERIAL<TAB>SERIAL`, with `-` for no address.
fn parse_disk(line: &str) -> Option<GuestDisk> {
    let mut words = line.split('\t');
    let node = format!("/dev/{}", words.next()?);
    let address = words.next()?;
    Some(GuestDisk {
        node,
        address: (address != "-").then(|| address.to_owned()),
        serials: words.map(str::to_owned).collect(),
    })
}

/// `<6>[    1.234567] text`; the number holds the facility above its lowest three bits.
fn parse_kernel_message(line: &str) -> Option<KernelMessage> {
    let (level, rest) = line.strip_prefix('<')?.split_once('>')?;
    let (_, text) = rest.split_once("] ")?;
    Some(KernelMessage {
        level: (level.parse::<u32>().ok()? & 7) as u8,
        text: text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_line_is_taken_apart() {
        let disk = parse_disk("sdb\t6:0:0:1\tU 1\tB2").unwrap();
        assert_eq!((disk.node.as_str(), disk.host()), ("/dev/sdb", Some(6)));
        assert_eq!(disk.serials, ["U 1", "B2"]);
        let nvme = parse_disk("nvme0n1\t-\tN").unwrap();
        assert_eq!((nvme.address, nvme.serials), (None, vec!["N".to_owned()]));
    }

    #[test]
    fn a_kernel_line_loses_facility_and_time() {
        let message = parse_kernel_message("<12>[    3.141592] sd 0:0:0:0: [sda] text").unwrap();
        assert_eq!(message.level, 4);
        assert_eq!(message.text, "sd 0:0:0:0: [sda] text");
        assert_eq!(parse_kernel_message("nothing"), None);
    }

    #[test]
    fn a_host_path_is_absolute_and_real() {
        assert_eq!(Guest::host_path(Path::new("/dev/../usr")), "/hostroot/usr");
        assert!(Guest::host_path(Path::new("no-such-file")).ends_with("/no-such-file"));
    }
}
