//! A running guest: commands in, output out.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::frame::{self, Message};
use crate::modules::{Tree, module_name};
use crate::served::Slot;
use crate::setup::Kernel;
use crate::vm::{Qemu, Scratch, tail};

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
    equipment: Equipment,
    /// Number that the next kernel message will have, as far as is known.
    next_message: Cell<u64>,
    /// Number of the first kernel message that [`Self::dmesg_new`] has not shown.
    first_new_message: Cell<u64>,
}

/// What a guest has beside QEMU and the port.
pub(crate) struct Equipment {
    pub kernel: Kernel,
    pub tree: OnceCell<Tree>,
    /// What serves devices, if it was told.
    pub program: Option<PathBuf>,
    pub slots: Vec<Slot>,
    pub network: bool,
    /// Where sockets and logs go, if there are slots or a network.
    pub files: Option<Scratch>,
    /// Devices served so far.
    pub served_count: Cell<u32>,
    /// Names in sysfs of devices that came by USB/IP.
    pub imported: RefCell<Vec<String>>,
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
    /// The directory of its device in the guest's sysfs, with the way through buses and ports.
    pub sysfs: String,
}

impl GuestDisk {
    /// The node without its directory: `sda`.
    pub fn name(&self) -> &str {
        self.node.trim_start_matches("/dev/")
    }

    /// The number of the SCSI host.
    pub fn host(&self) -> Option<u64> {
        self.address.as_deref()?.split(':').next()?.parse().ok()
    }
}

/// A USB device as the guest's kernel knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsbDevice {
    /// Its directory in the guest's sysfs.
    pub sysfs: String,
    /// idVendor and idProduct.
    pub ids: (u16, u16),
    /// Speed of the link; 480 is high speed, 5000 super speed.
    pub mbit_per_s: u32,
    /// Number of the bus and of the device on it, as `lsusb -s` wants them.
    pub address: (u32, u32),
    /// Interfaces of the present configuration; none before it is configured.
    pub interfaces: Vec<UsbInterface>,
}

/// One interface in its present setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsbInterface {
    /// bInterfaceClass, bInterfaceSubClass, bInterfaceProtocol.
    pub class: (u8, u8, u8),
    /// The driver that has it.
    pub driver: Option<String>,
}

impl UsbDevice {
    /// Its name in sysfs: bus and ports, `2-3`.
    pub fn name(&self) -> &str {
        self.sysfs.rsplit('/').next().unwrap_or_default()
    }

    /// The driver of the first mass storage interface.
    pub fn storage_driver(&self) -> Option<&str> {
        let is_storage = |interface: &&UsbInterface| interface.class.0 == 8;
        self.interfaces.iter().find(is_storage)?.driver.as_deref()
    }
}

/// A line of the kernel's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelMessage {
    /// Its number, which grows by one from message to message.
    pub sequence: u64,
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
        equipment: Equipment,
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
            equipment,
            next_message: Cell::new(0),
            first_new_message: Cell::new(0),
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

    /// The USB devices, root hubs left out.
    pub fn usb_devices(&self) -> Result<Vec<UsbDevice>, Error> {
        let listing = self
            .ask(
                &Message::new(frame::USB, [""; 0]),
                SHORT,
                "the list of USB devices",
            )?
            .text(0);
        Ok(listing.lines().filter_map(parse_usb_device).collect())
    }

    /// The kernel's log.
    pub fn dmesg(&self) -> Result<Vec<KernelMessage>, Error> {
        self.dmesg_since(0)
    }

    /// The kernel's messages from this number on, which [`Self::kernel_mark`] may have given.
    pub fn dmesg_since(&self, mark: u64) -> Result<Vec<KernelMessage>, Error> {
        let request = Message::new(frame::DMESG, [mark.to_string()]);
        let log = self.ask(&request, SHORT, "the kernel's log")?.text(0);
        let messages: Vec<KernelMessage> = log.lines().filter_map(parse_kernel_message).collect();
        if let Some(last) = messages.last() {
            self.next_message
                .set(self.next_message.get().max(last.sequence + 1));
        }
        Ok(messages)
    }

    /// The kernel's messages since the last call of this; the first gives all.
    pub fn dmesg_new(&self) -> Result<Vec<KernelMessage>, Error> {
        let messages = self.dmesg_since(self.first_new_message.get())?;
        if let Some(last) = messages.last() {
            self.first_new_message.set(last.sequence + 1);
        }
        Ok(messages)
    }

    /// The number that the kernel's next message will have.
    pub fn kernel_mark(&self) -> Result<u64, Error> {
        self.dmesg_since(self.next_message.get())?;
        Ok(self.next_message.get())
    }

    /// Loads a module of the guest's kernel with those it depends on: `drivetemp`, `scsi_debug dev_size_mb=8`. What is there
    /// already, or is built in, is left as it is.
    pub fn load_module(&self, name_and_parameters: &str) -> Result<(), Error> {
        let (name, parameters) = name_and_parameters
            .split_once(' ')
            .unwrap_or((name_and_parameters, ""));
        let tree = match self.equipment.tree.get() {
            Some(tree) => tree,
            None => {
                let tree = Tree::open(&self.equipment.kernel.modules)?;
                self.equipment.tree.get_or_init(|| tree)
            }
        };
        let closure = tree.closure(name, &mut BTreeSet::new())?;
        let count = closure.len();
        for (index, module) in closure.into_iter().enumerate() {
            let parameters = if index + 1 == count { parameters } else { "" };
            if module.is_packed {
                // The guest's kernel wants it unpacked.
                let scratch = Scratch::new()?;
                let file = scratch.path(&format!("{}.ko", module.name));
                fs::write(&file, &module.bytes).map_err(Error::io(format!("writing {}", file.display())))?;
                self.insert_module(&file, parameters)?;
            } else {
                self.insert_module(&module.path, parameters)?;
            }
        }
        Ok(())
    }

    /// Loads a module from a file of the host.
    pub fn insert_module(&self, file: &Path, parameters: &str) -> Result<(), Error> {
        let path = Self::host_path(file);
        let name = module_name(file).ok_or_else(|| Error::Usage(format!("{path} is no module")))?;
        self.ask(
            &Message::new(frame::INSMOD, [name.as_str(), path.as_str(), parameters]),
            SHORT,
            &path,
        )
        .map(drop)
    }

    /// Gives the network card its address.
    pub(crate) fn bring_network_up(&self) -> Result<(), Error> {
        self.load_module("virtio_net")?;
        let request = Message::new(frame::NETWORK, ["10.0.2.15", "255.255.255.0"]);
        self.ask(&request, SHORT, "the network").map(drop)
    }

    /// Removes files that QEMU has open by now: all, or all but the sockets of slots.
    pub(crate) fn forget_files(&mut self, keep_slots: bool) {
        match &self.equipment.files {
            Some(files) if keep_slots => files.keep_slots(),
            _ => self.equipment.files = None,
        }
    }

    pub(crate) fn equipment(&self) -> &Equipment {
        &self.equipment
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

    /// Everything that QEMU has said so far.
    pub fn emulator_messages(&self) -> String {
        self.inner.borrow().qemu.messages()
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

/// `sda<TAB>2:0:0:0<TAB>/sys/devices/...<TAB>SERIAL<TAB>SERIAL`, with `-` for no address.
fn parse_disk(line: &str) -> Option<GuestDisk> {
    let mut words = line.split('\t');
    let node = format!("/dev/{}", words.next()?);
    let address = words.next()?;
    Some(GuestDisk {
        node,
        address: (address != "-").then(|| address.to_owned()),
        sysfs: words.next()?.to_owned(),
        serials: words.map(str::to_owned).collect(),
    })
}

/// `/sys/devices/...<TAB>174c:55aa<TAB>5000<TAB>2:7<TAB>08/06/62=uas`, with as many interfaces as there are.
fn parse_usb_device(line: &str) -> Option<UsbDevice> {
    let mut words = line.split('\t');
    let sysfs = words.next()?.to_owned();
    let (vid, pid) = words.next()?.split_once(':')?;
    let speed = words.next()?;
    let (bus, device) = words.next()?.split_once(':')?;
    let interface = |word: &str| {
        let (class, driver) = word.split_once('=')?;
        let mut class = class.split('/').map(|byte| u8::from_str_radix(byte, 16).ok());
        Some(UsbInterface {
            class: (class.next()??, class.next()??, class.next()??),
            driver: (!driver.is_empty()).then(|| driver.to_owned()),
        })
    };
    Some(UsbDevice {
        sysfs,
        ids: (
            u16::from_str_radix(vid, 16).ok()?,
            u16::from_str_radix(pid, 16).ok()?,
        ),
        // Low speed is 1.5.
        mbit_per_s: speed.split('.').next()?.parse().ok()?,
        address: (bus.parse().ok()?, device.parse().ok()?),
        interfaces: words.filter_map(interface).collect(),
    })
}

/// `6,339,5140900,-;text`; the first number holds the facility above its lowest three bits, the second is the message's own.
fn parse_kernel_message(line: &str) -> Option<KernelMessage> {
    let (head, text) = line.split_once(';')?;
    let mut numbers = head.split(',');
    Some(KernelMessage {
        level: (numbers.next()?.parse::<u32>().ok()? & 7) as u8,
        sequence: numbers.next()?.parse().ok()?,
        text: unescape(text),
    })
}

/// The kernel writes what cannot be printed, and a backslash, as `\xHH`.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after
            .strip_prefix(b"x")
            .filter(|_| byte == b'\\')
            .and_then(|hex| std::str::from_utf8(hex.get(..2)?).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() {
            after.get(3..).unwrap_or_default()
        } else {
            after
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_line_is_taken_apart() {
        let disk = parse_disk("sdb\t6:0:0:1\t/sys/devices/x\tU 1\tB2").unwrap();
        assert_eq!((disk.node.as_str(), disk.host()), ("/dev/sdb", Some(6)));
        assert_eq!((disk.name(), disk.sysfs.as_str()), ("sdb", "/sys/devices/x"));
        assert_eq!(disk.serials, ["U 1", "B2"]);
        let nvme = parse_disk("nvme0n1\t-\t/sys/devices/y\tN").unwrap();
        assert_eq!((nvme.address, nvme.serials), (None, vec!["N".to_owned()]));
    }

    #[test]
    fn a_kernel_line_loses_facility_and_time() {
        let message = parse_kernel_message("12,339,3141592,-;sd 0:0:0:0: [sda] a;b\\x5cc").unwrap();
        assert_eq!((message.level, message.sequence), (4, 339));
        assert_eq!(message.text, "sd 0:0:0:0: [sda] a;b\\c");
        assert_eq!(parse_kernel_message("nothing"), None);
        assert_eq!(unescape("\\xc3\\xa4 \\x \\"), "\u{e4} \\x \\");
    }

    #[test]
    fn a_usb_device_line_is_taken_apart() {
        let line =
            "/sys/devices/pci0000:00/0000:00:1d.0/usb2/2-3\t174c:55aa\t5000\t2:7\t08/06/62=uas\t03/00/00=";
        let device = parse_usb_device(line).unwrap();
        assert_eq!((device.name(), device.ids), ("2-3", (0x174c, 0x55aa)));
        assert_eq!((device.mbit_per_s, device.address), (5000, (2, 7)));
        assert_eq!(device.storage_driver(), Some("uas"));
        assert_eq!(device.interfaces.len(), 2);
        assert_eq!(device.interfaces[1].driver, None);
        // Not configured yet.
        let early = parse_usb_device("/sys/x/1-1\t0951:1666\t1.5\t1:2").unwrap();
        assert_eq!((early.mbit_per_s, early.storage_driver()), (1, None));
    }

    #[test]
    fn a_host_path_is_absolute_and_real() {
        assert_eq!(Guest::host_path(Path::new("/dev/../usr")), "/hostroot/usr");
        assert!(Guest::host_path(Path::new("no-such-file")).ends_with("/no-such-file"));
    }
}
