//! USB devices that the `drivethru` program simulates, plugged into a running guest.
//!
//! The program is a child process, `drivethru sim serve`. Over usbredir it calls a socket of the emulator, which has a USB port
//! behind each; over USB/IP the guest's kernel calls it, by the emulator's network.

use std::env;
use std::ffi::{c_int, c_ulong};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use std::cell::{Cell, RefCell};

use serde_json::Value;

use crate::error::Error;
use crate::guest::{Guest, GuestDisk, UsbDevice};
use crate::setup;

/// From the child's start until it listens.
const START_LIMIT: Duration = Duration::from_secs(10);
/// For an answer on the control socket.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Until the guest's kernel has forgotten who was at a port before.
const PREDECESSOR_LIMIT: Duration = Duration::from_secs(30);
/// For the guest's `usbip`.
const ATTACH_LIMIT: Duration = Duration::from_secs(30);
/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(25);
/// How the host is called in the guest's network.
const HOST_IN_GUEST: &str = "10.0.2.2";
/// Names the program, where nobody else does.
const PROGRAM_VARIABLE: &str = "DRIVETHRU";

/// How a device comes to the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Way {
    /// At a port of the emulator's USB 3 controller.
    UsbRedir,
    /// At a virtual port of the guest's own kernel, over TCP. There are no streams: UAS binds at high speed only.
    UsbIp,
}

/// A device to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    spec: String,
    way: Way,
    unplugged: bool,
    arguments: Vec<String>,
}

impl Served {
    /// A profile of the simulator with its options: `ssd,fault=timeout`. Over usbredir, plugged in.
    pub fn profile(spec: impl Into<String>) -> Self {
        Self {
            spec: spec.into(),
            way: Way::UsbRedir,
            unplugged: false,
            arguments: Vec::new(),
        }
    }

    /// Brings it by usbredir; needs [`crate::Builder::usb_slots`].
    pub fn usbredir(mut self) -> Self {
        self.way = Way::UsbRedir;
        self
    }

    /// Brings it by USB/IP; needs [`crate::Builder::network`] and the program `usbip`.
    pub fn usbip(mut self) -> Self {
        self.way = Way::UsbIp;
        self
    }

    /// Served, but not plugged in before [`ServedDevice::plug`].
    pub fn unplugged(mut self) -> Self {
        self.unplugged = true;
        self
    }

    /// More arguments for `drivethru sim serve`.
    pub fn args<S: Into<String>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// How it comes to the guest.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Profile and options.
    pub fn spec(&self) -> &str {
        &self.spec
    }
}

impl FromStr for Served {
    type Err = Error;

    /// `[usbip:|usbredir:]PROFILE[,option[=value]...]`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let served = match text.split_once(':') {
            Some(("usbip", spec)) => Self::profile(spec).usbip(),
            Some(("usbredir", spec)) => Self::profile(spec),
            _ => Self::profile(text),
        };
        if served.spec.is_empty() || served.spec.starts_with(',') {
            return Err(Error::Usage(format!("device {text:?} names no profile")));
        }
        Ok(served)
    }
}

/// The `drivethru` program: what the variable `DRIVETHRU` names, else the younger one of the release and the debug build in the
/// package that this one belongs to.
pub fn default_program() -> Result<PathBuf, Error> {
    if let Some(named) = env::var_os(PROGRAM_VARIABLE).filter(|value| !value.is_empty()) {
        return Ok(named.into());
    }
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let age = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified()).ok();
    ["release", "debug"]
        .map(|build| target.join(build).join("drivethru"))
        .into_iter()
        .filter(|path| path.is_file())
        .max_by_key(age)
        .ok_or_else(|| {
            Error::Unavailable(format!(
                "no drivethru program in {} (cargo build makes it), and {PROGRAM_VARIABLE} names none",
                target.display()
            ))
        })
}

/// A place for a served device: a port of the emulator's USB controller with a socket behind it.
pub(crate) struct Slot {
    /// The emulator listens here.
    pub socket: PathBuf,
    /// Number of the port, from 1.
    pub port: usize,
    /// A device is there.
    pub taken: Cell<bool>,
}

/// Where the guest sees the device.
enum Place {
    Slot {
        index: usize,
        port: usize,
        socket: PathBuf,
    },
    UsbIp {
        tcp_port: u16,
        /// Its name in sysfs, such as `3-1`, while it is attached.
        name: RefCell<Option<String>>,
    },
}

impl Place {
    /// Whether this directory in sysfs belongs to what is plugged in here, or to something behind it.
    fn holds(&self, sysfs: &str) -> bool {
        match self {
            Self::Slot { port, .. } => is_at_port(sysfs, *port),
            Self::UsbIp { name, .. } => name
                .borrow()
                .as_deref()
                .is_some_and(|name| is_imported(sysfs) && sysfs.split('/').any(|word| word == name)),
        }
    }
}

/// `/sys/devices/pci0000:00/0000:00:1d.0/usb2/2-3/...` is at port 3, be it as a USB 2 or a USB 3 device.
fn is_at_port(sysfs: &str, port: usize) -> bool {
    let words: Vec<&str> = sysfs.split('/').collect();
    words.windows(3).any(|window| match window {
        [controller, hub, device] => {
            let bus = hub.strip_prefix("usb");
            *controller == crate::vm::USB_CONTROLLER
                && bus.is_some_and(|bus| *device == format!("{bus}-{port}"))
        }
        _ => false,
    })
}

/// Whether the kernel says goodbye to the device at this place: `usb 2-3: USB disconnect, device number 4`.
fn is_farewell(message: &str, sysfs: &str) -> bool {
    let name = message
        .strip_prefix("usb ")
        .and_then(|rest| rest.split_once(": USB disconnect"));
    name.is_some_and(|(name, _)| sysfs.split('/').any(|word| word == name))
}

fn is_imported(sysfs: &str) -> bool {
    sysfs.contains("/vhci_hcd.")
}

/// A served device in a guest. Dropping it pulls the plug, ends the program and removes its files.
pub struct ServedDevice<'a> {
    guest: &'a Guest,
    spec: String,
    child: RefCell<Child>,
    files: Files,
    place: Place,
    /// Number of the first kernel message since it was last plugged in.
    mark: Cell<u64>,
}

/// The files of one child; removed when dropped.
struct Files {
    control: PathBuf,
    log: PathBuf,
    output: PathBuf,
}

impl Drop for Files {
    fn drop(&mut self) {
        for path in [&self.control, &self.log, &self.output] {
            let _ = fs::remove_file(path);
        }
    }
}

/// Frees the place if attaching fails half-way.
struct Reserved<'a>(Option<&'a Cell<bool>>);

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if let Some(taken) = self.0 {
            taken.set(false);
        }
    }
}

/// A child that is ended when dropped, until somebody takes it over.
struct Guarded(Option<Child>);

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            end(child);
        }
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

impl Guest {
    /// Serves a device, and plugs it into the guest. It has then been offered to the guest's kernel, which takes a while to find
    /// out what it is: [`ServedDevice::wait_for_disk`].
    pub fn attach(&self, served: &Served) -> Result<ServedDevice<'_>, Error> {
        let equipment = self.equipment();
        let program = match &equipment.program {
            Some(program) => program.clone(),
            None => default_program()?,
        };
        let no_files = || Error::Usage("the guest has neither USB slots nor a network".to_owned());
        let scratch = equipment.files.as_ref().ok_or_else(no_files)?;
        let (place, mut reserved) = self.place_for(served.way)?;

        let number = equipment.served_count.get();
        equipment.served_count.set(number + 1);
        let files = Files {
            control: scratch.path(&format!("control{number}")),
            log: scratch.path(&format!("log{number}")),
            output: scratch.path(&format!("output{number}")),
        };
        let mut command = Command::new(&program);
        command.args(["sim", "serve", &served.spec]);
        match &place {
            Place::Slot { socket, .. } => {
                command.args(["--usbredir", &format!("unix:{}", socket.display()), "--connect"])
            }
            Place::UsbIp { tcp_port, .. } => command.args(["--usbip", &format!("127.0.0.1:{tcp_port}")]),
        };
        command
            .args(["--control", &format!("unix:{}", files.control.display())])
            .arg("--log")
            .arg(&files.log)
            .args(served.unplugged.then_some("--unplugged"))
            .args(&served.arguments);
        let mark = self.kernel_mark()?;
        let mut child = Guarded(Some(start(&mut command, &files.output)?));
        wait_until_served(&mut child, &files, &served.spec)?;

        let device = ServedDevice {
            guest: self,
            spec: served.spec.clone(),
            child: RefCell::new(child.0.take().expect("it was put in above")),
            files,
            place,
            mark: Cell::new(mark),
        };
        reserved.0 = None; // from here on the device frees it
        if !served.unplugged {
            device.import()?;
        }
        Ok(device)
    }

    /// A free place, from which whoever was there before is gone.
    fn place_for(&self, way: Way) -> Result<(Place, Reserved<'_>), Error> {
        let equipment = self.equipment();
        let (place, reserved) = match way {
            Way::UsbRedir => {
                let slots = &equipment.slots;
                let free = slots.iter().enumerate().find(|(_, slot)| !slot.taken.get());
                let (index, slot) = free.ok_or_else(|| {
                    Error::Usage(format!("none of the guest's {} USB slots is free", slots.len()))
                })?;
                slot.taken.set(true);
                let place = Place::Slot {
                    index,
                    port: slot.port,
                    socket: slot.socket.clone(),
                };
                (place, Reserved(Some(&slot.taken)))
            }
            Way::UsbIp => {
                if !equipment.network {
                    return Err(Error::Usage("USB/IP needs a guest with a network".to_owned()));
                }
                setup::require("usbip")?;
                self.load_module("vhci_hcd")?;
                let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
                let place = Place::UsbIp {
                    tcp_port: free.map_err(Error::io("looking for a free TCP port"))?.port(),
                    name: RefCell::new(None),
                };
                (place, Reserved(None))
            }
        };
        let until = Instant::now() + PREDECESSOR_LIMIT;
        loop {
            let known = equipment.imported.borrow();
            let left: Vec<UsbDevice> = self.usb_devices()?;
            let left = left.into_iter().filter(|device| match way {
                Way::UsbRedir => place.holds(&device.sysfs),
                Way::UsbIp => is_imported(&device.sysfs) && !known.iter().any(|name| name == device.name()),
            });
            let left: Vec<String> = left.map(|device| device.sysfs).collect();
            if left.is_empty() {
                break;
            }
            if Instant::now() > until {
                return Err(Error::NotSo {
                    what: format!("{} is gone", left.join(", ")),
                    after: PREDECESSOR_LIMIT,
                    details: String::new(),
                });
            }
            std::thread::sleep(INTERVAL);
        }
        Ok((place, reserved))
    }
}

impl ServedDevice<'_> {
    /// Profile and options.
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// Number of the USB slot that it is in, from 0; over USB/IP it is in none.
    pub fn slot(&self) -> Option<usize> {
        match self.place {
            Place::Slot { index, .. } => Some(index),
            Place::UsbIp { .. } => None,
        }
    }

    /// Number of the program's process.
    pub fn process_id(&self) -> u32 {
        self.child.borrow().id()
    }

    /// What the program has written to standard output and error.
    pub fn output(&self) -> String {
        said(&self.files.output)
    }

    /// The file that the program keeps its log in.
    pub fn log_file(&self) -> &Path {
        &self.files.log
    }

    /// One command to the program's control socket, and its answer.
    ///
    /// # Errors
    /// [`Error::Refused`] if the answer is an error.
    pub fn control(&self, command: &str) -> Result<Value, Error> {
        let request = format!("{} of {}", command, self.spec);
        let failed = |error: io::Error| {
            self.alive().err().unwrap_or_else(|| Error::Io {
                what: request.clone(),
                source: error,
            })
        };
        let line = ask(&self.files.control, command).map_err(failed)?;
        let answer: Value = serde_json::from_str(&line)
            .map_err(|error| Error::Protocol(format!("{request}: {error} in {line:?}")))?;
        match answer.get("error") {
            Some(why) if !why.is_null() => Err(Error::Refused {
                request,
                why: why.as_str().map_or_else(|| why.to_string(), str::to_owned),
            }),
            _ => Ok(answer),
        }
    }

    /// The commands that have reached the device so far, oldest first.
    pub fn log(&self) -> Result<Vec<Value>, Error> {
        match self.control("log")? {
            Value::Array(entries) => Ok(entries),
            Value::Object(mut answer) => match answer.remove("log") {
                Some(Value::Array(entries)) => Ok(entries),
                other => Err(Error::Protocol(format!("a log that is no list: {other:?}"))),
            },
            other => Err(Error::Protocol(format!("a log that is no list: {other}"))),
        }
    }

    /// Forgets the log.
    pub fn clear_log(&self) -> Result<(), Error> {
        self.control("log clear").map(drop)
    }

    /// Pulls the plug. The guest's kernel needs a moment to see it: [`Self::wait_gone`].
    pub fn unplug(&self) -> Result<(), Error> {
        self.control("unplug").map(drop)
    }

    /// Plugs it in again: a power cycle for bridge and drive.
    pub fn plug(&self) -> Result<(), Error> {
        self.forget_import();
        self.mark.set(self.guest.kernel_mark()?);
        self.control("plug")?;
        self.import()
    }

    /// Over USB/IP nobody brings a device back that has dropped off the bus by itself; this does. Over usbredir it comes alone.
    pub fn reattach(&self) -> Result<(), Error> {
        self.forget_import();
        self.mark.set(self.guest.kernel_mark()?);
        self.import()
    }

    /// The device as the guest's USB core knows it, if it is there.
    pub fn usb(&self) -> Result<Option<UsbDevice>, Error> {
        let devices = self.guest.usb_devices()?;
        Ok(devices.into_iter().find(|device| self.place.holds(&device.sysfs)))
    }

    /// The driver that the guest's kernel has bound to its storage interface: `uas`, `usb-storage`.
    pub fn driver(&self) -> Result<Option<String>, Error> {
        Ok(self
            .usb()?
            .and_then(|device| device.storage_driver().map(str::to_owned)))
    }

    /// Its disks, by address. The kernel may not have finished with them yet.
    pub fn disks(&self) -> Result<Vec<GuestDisk>, Error> {
        let mut disks = self.guest.disks()?;
        disks.retain(|disk| self.place.holds(&disk.sysfs));
        disks.sort_by(|a, b| a.address.cmp(&b.address));
        Ok(disks)
    }

    /// Waits until the guest's kernel has its (first) disk, has read the partition table and waits for others to use it. It is found
    /// by the USB port, so that serials need be neither there nor unique.
    pub fn wait_for_disk(&self, timeout: Duration) -> Result<GuestDisk, Error> {
        self.wait(timeout, "the disk is there", || {
            let Some(disk) = self.disks()?.into_iter().next() else {
                return Ok(None);
            };
            let address = disk.address.clone().unwrap_or_default();
            let last_words = format!("sd {address}: [{}] Attached SCSI", disk.name());
            let log = self.guest.dmesg_since(self.mark.get())?;
            // What was said of a predecessor, before the device dropped off the bus by itself, does not count.
            let since = log
                .rsplit(|message| is_farewell(&message.text, &disk.sysfs))
                .next();
            let mut since = since.unwrap_or_default().iter();
            Ok(since
                .any(|message| message.text.starts_with(&last_words))
                .then_some(disk))
        })
    }

    /// Waits until the guest's USB core knows it, and a driver has it if one wants it; for devices without a disk.
    pub fn wait_for_usb(&self, timeout: Duration) -> Result<UsbDevice, Error> {
        self.wait(timeout, "the USB device is there", || {
            Ok(self.usb()?.filter(|device| !device.interfaces.is_empty()))
        })
    }

    /// Waits until the guest knows neither the device nor its disk any more.
    pub fn wait_gone(&self, timeout: Duration) -> Result<(), Error> {
        self.wait(timeout, "the device is gone", || {
            let gone = self.usb()?.is_none() && self.disks()?.is_empty();
            Ok(gone.then_some(()))
        })
    }

    fn wait<T>(
        &self,
        timeout: Duration,
        what: &str,
        look: impl Fn() -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let until = Instant::now() + timeout;
        loop {
            if let Some(found) = look()? {
                return Ok(found);
            }
            self.alive()?;
            if Instant::now() > until {
                return Err(Error::NotSo {
                    what: format!("{}: {what}", self.spec),
                    after: timeout,
                    details: self.said_meanwhile()?,
                });
            }
            std::thread::sleep(INTERVAL);
        }
    }

    /// What the guest's kernel has said since the device was plugged in, and all that the program has.
    fn said_meanwhile(&self) -> Result<String, Error> {
        let log = self.guest.dmesg_since(self.mark.get())?;
        let log: Vec<String> = log.into_iter().map(|message| message.text).collect();
        Ok(format!("{}\n{}", log.join("\n"), self.output()))
    }

    fn alive(&self) -> Result<(), Error> {
        ended(&mut self.child.borrow_mut(), &self.files.output, &self.spec)
    }

    /// Over USB/IP the guest has to ask for the device.
    fn import(&self) -> Result<(), Error> {
        let Place::UsbIp { tcp_port, name } = &self.place else {
            return Ok(());
        };
        let call = format!("usbip --tcp-port {tcp_port} attach -r {HOST_IN_GUEST} -b 1-1");
        let attached = self.guest.run(&call, ATTACH_LIMIT)?;
        if attached.status != 0 {
            self.alive()?;
            return Err(Error::Refused {
                request: call,
                why: attached.stderr_text() + &self.said_meanwhile()?,
            });
        }
        let imported = &self.guest.equipment().imported;
        let found = self.wait(ATTACH_LIMIT, "the device is attached", || {
            let known = imported.borrow();
            let mut devices = self.guest.usb_devices()?.into_iter();
            Ok(devices
                .find(|device| is_imported(&device.sysfs) && !known.iter().any(|name| name == device.name())))
        })?;
        imported.borrow_mut().push(found.name().to_owned());
        name.replace(Some(found.name().to_owned()));
        Ok(())
    }

    fn forget_import(&self) {
        if let Place::UsbIp { name, .. } = &self.place
            && let Some(name) = name.take()
        {
            let mut imported = self.guest.equipment().imported.borrow_mut();
            imported.retain(|known| *known != name);
        }
    }
}

impl Drop for ServedDevice<'_> {
    fn drop(&mut self) {
        end(self.child.get_mut());
        self.forget_import();
        if let Place::Slot { index, .. } = self.place
            && let Some(slot) = self.guest.equipment().slots.get(index)
        {
            slot.taken.set(false);
        }
    }
}

/// The program ends with whoever started it, even if that is killed.
fn start(command: &mut Command, output: &Path) -> Result<Child, Error> {
    let doing = || Error::io(format!("writing {}", output.display()));
    let file = File::create_new(output).map_err(doing())?;
    command
        .stdin(Stdio::null())
        .stdout(file.try_clone().map_err(doing())?)
        .stderr(file);
    // SAFETY: prctl(PR_SET_PDEATHSIG, signal) only sets a number in the process just forked, and touches no memory of it.
    unsafe {
        command.pre_exec(|| match prctl(PR_SET_PDEATHSIG, SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    command.spawn().map_err(|error| {
        let program = Path::new(command.get_program());
        match error.kind() {
            io::ErrorKind::NotFound => Error::Unavailable(format!("there is no {}", program.display())),
            _ => Error::io(program.display().to_string())(error),
        }
    })
}

const PR_SET_PDEATHSIG: c_int = 1;
const SIGKILL: c_ulong = 9;

unsafe extern "C" {
    fn prctl(what: c_int, ...) -> c_int;
}

/// Sends one line, and reads one.
fn ask(socket: &Path, command: &str) -> io::Result<String> {
    let mut socket = UnixStream::connect(socket)?;
    socket.set_read_timeout(Some(ANSWER_LIMIT))?;
    socket.write_all(format!("{command}\n").as_bytes())?;
    let mut line = String::new();
    match BufReader::new(socket).read_line(&mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line),
    }
}

/// The control socket is there as soon as the program serves.
fn wait_until_served(child: &mut Guarded, files: &Files, spec: &str) -> Result<(), Error> {
    let until = Instant::now() + START_LIMIT;
    loop {
        match UnixStream::connect(&files.control) {
            Ok(_) => return Ok(()),
            Err(_) if Instant::now() < until => {}
            Err(error) => return Err(Error::io(format!("control socket of {spec}"))(error)),
        }
        if let Some(child) = &mut child.0 {
            ended(child, &files.output, spec)?;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An error if the program has ended.
fn ended(child: &mut Child, output: &Path, spec: &str) -> Result<(), Error> {
    match child.try_wait() {
        Ok(None) => Ok(()),
        Ok(Some(status)) => Err(Error::ServerEnded {
            spec: spec.to_owned(),
            status: status.to_string(),
            output: said(output),
        }),
        Err(error) => Err(Error::io(format!("looking for the server of {spec}"))(error)),
    }
}

fn said(output: &Path) -> String {
    let bytes = fs::read(output).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_read_from_words() {
        let parsed = |text: &str| text.parse::<Served>().unwrap();
        assert_eq!(parsed("ssd,temp=60"), Served::profile("ssd,temp=60"));
        assert_eq!(parsed("usbredir:ssd"), Served::profile("ssd").usbredir());
        assert_eq!(parsed("usbip:stick"), Served::profile("stick").usbip());
        assert_eq!(parsed("ssd,log=a:b").spec(), "ssd,log=a:b");
        for wrong in ["", "usbip:", ",x"] {
            assert!(wrong.parse::<Served>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_port_is_told_from_others_by_the_path() {
        let path = "/sys/devices/pci0000:00/0000:00:1d.0/usb2/2-1/2-1:1.0/host7/target7:0:0/7:0:0:0";
        assert!(is_at_port(path, 1));
        assert!(!is_at_port(path, 2));
        assert!(!is_at_port(&path.replace("1d.0", "05.0"), 1));
        assert!(!is_at_port(&path.replace("/2-1/", "/2-11/"), 1));
        assert!(is_at_port("/sys/devices/pci0000:00/0000:00:1d.0/usb1/1-12", 12));
        assert!(!is_at_port("/sys/devices/platform/vhci_hcd.0/usb3/3-1", 1));
        let farewell = "usb 2-1: USB disconnect, device number 4";
        assert!(is_farewell(farewell, path));
        assert!(!is_farewell(&farewell.replace("2-1", "2-11"), path));
        assert!(!is_farewell("usb 2-1: new SuperSpeed USB device", path));
        assert!(is_imported("/sys/devices/platform/vhci_hcd.0/usb3/3-1"));
    }
}
