//! Putting a guest together and booting it.

use std::cell::{Cell, OnceCell, RefCell};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::disk::Disk;
use crate::error::Error;
use crate::frame;
use crate::guest::{Equipment, Guest};
use crate::initrd::initrd;
use crate::served::Slot;
use crate::setup::{self, QEMU};

/// The kernel's command line, without the number of disks.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 nokaslr mitigations=off tsc=reliable no_timer_check \
                                random.trust_cpu=on log_buf_len=1M rdinit=/init";
/// Names of directories for a guest's files start so; the process's number follows, then a count.
const SCRATCH_PREFIX: &str = "drivethru-vm-";
/// The sockets of slots, in that directory.
const SLOT_PREFIX: &str = "slot";
/// The SATA ports of the machine.
const MAX_SATA_DISKS: usize = 6;
/// The ports of the USB controller, for disks and slots together.
const USB_PORTS: usize = 15;
/// Where the USB controller is on the PCI bus; QEMU's option names device and function only.
pub(crate) const USB_CONTROLLER: &str = "0000:00:1d.0";
const USB_CONTROLLER_OPTION: &str = "1d.0";

/// Where guests come from.
pub struct Vm;

impl Vm {
    /// A guest with no disks yet.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

/// A guest to be.
#[derive(Debug, Clone)]
pub struct Builder {
    disks: Vec<Disk>,
    memory_mib: u32,
    boot_timeout: Duration,
    qemu_arguments: Vec<String>,
    usb_slots: usize,
    network: bool,
    program: Option<PathBuf>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            disks: Vec::new(),
            memory_mib: 1024,
            boot_timeout: Duration::from_secs(120),
            qemu_arguments: Vec::new(),
            usb_slots: 0,
            network: false,
            program: None,
        }
    }
}

impl Builder {
    /// Plugs in one more disk.
    pub fn disk(mut self, disk: Disk) -> Self {
        self.disks.push(disk);
        self
    }

    /// Memory of the guest; 1024 if not set.
    pub fn memory_mib(mut self, memory_mib: u32) -> Self {
        self.memory_mib = memory_mib;
        self
    }

    /// How long the guest may take until it runs commands; two minutes if not set.
    pub fn boot_timeout(mut self, timeout: Duration) -> Self {
        self.boot_timeout = timeout;
        self
    }

    /// USB ports for served devices ([`Guest::attach`]); none if not set.
    pub fn usb_slots(mut self, count: usize) -> Self {
        self.usb_slots = count;
        self
    }

    /// Gives the guest a network, in which it is 10.0.2.15 and the host 10.0.2.2; served devices can come by USB/IP then.
    pub fn network(mut self) -> Self {
        self.network = true;
        self
    }

    /// The `drivethru` program that serves devices; [`crate::default_program`] if not set.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// More arguments for QEMU. The USB controller is called `xhci` there, its bus `xhci.0`; disks take its lowest ports, slots the
    /// next ones.
    pub fn qemu_args<S: Into<String>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.qemu_arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Starts QEMU and waits until the guest runs commands and has all its disks.
    pub fn boot(self) -> Result<Guest, Error> {
        let started = Instant::now();
        let kernel = setup::installed()?;
        let initrd = initrd(&kernel)?;
        let files = Scratch::new()?;
        let console_path = files.path("console");
        let create = |path: &Path| {
            File::options()
                .read(true)
                .append(true)
                .create_new(true)
                .open(path)
                .map_err(Error::io(format!("creating {}", path.display())))
        };
        let console = create(&console_path)?;
        let stderr = create(&files.path("stderr"))?;

        let slots = self.slots(&files);
        let network = [
            "-netdev",
            "user,id=net,ipv6=off",
            "-device",
            "virtio-net-pci,netdev=net,romfile=",
        ];
        let network = self.network.then_some(network).into_iter().flatten();
        let mut command = Command::new(QEMU);
        command
            .args([
                "-accel",
                "tcg",
                "-cpu",
                "max,la57=off",
                "-machine",
                "q35",
                "-smp",
                "1",
            ])
            .args(["-m", &self.memory_mib.to_string()])
            .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
            .arg("-kernel")
            .arg(&kernel.vmlinux)
            .arg("-initrd")
            .arg(&initrd)
            .args([
                "-append",
                &format!("{KERNEL_ARGUMENTS} vm.disks={}", self.disks.len()),
            ])
            .args(["-serial", &format!("file:{}", console_path.display())])
            .args(["-device", "virtio-serial-pci"])
            // The host's end of the port is the socket that QEMU finds as its standard input.
            .args([
                "-chardev",
                "socket,id=job,fd=0",
                "-device",
                "virtserialport,nr=1,chardev=job,name=job",
            ])
            .args([
                "-fsdev",
                "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap",
            ])
            .args(["-device", "virtio-9p-pci,fsdev=root,mount_tag=hostroot"])
            .args([
                "-device",
                &format!("qemu-xhci,id=xhci,addr={USB_CONTROLLER_OPTION},p2={USB_PORTS},p3={USB_PORTS}"),
            ])
            .args(self.disk_args(&files)?)
            .args(slots.iter().flat_map(slot_args))
            .args(network)
            .args(&self.qemu_arguments);
        let (ours, theirs) = UnixStream::pair().map_err(Error::io("making a socket pair"))?;
        let child = command
            .stdin(OwnedFd::from(theirs))
            .stdout(stderr.try_clone().map_err(Error::io("duplicating a file"))?)
            .stderr(stderr.try_clone().map_err(Error::io("duplicating a file"))?)
            .spawn()
            .map_err(Error::io(QEMU))?;
        drop(command); // and with it the other end of the socket: when QEMU is gone, ours ends
        let qemu = Qemu {
            child,
            console,
            stderr,
        };

        let equipment = Equipment {
            kernel,
            tree: OnceCell::new(),
            program: self.program.clone(),
            slots,
            network: self.network,
            files: Some(files),
            served_count: Cell::new(0),
            imported: RefCell::default(),
        };
        let serves = self.network || !equipment.slots.is_empty();
        let (mut guest, hello) = Guest::first_words(qemu, ours, self.boot_timeout, started, equipment)?;
        // All the files are open by now, so that nothing stays behind even if this process is killed; but sockets are opened by
        // name each time.
        guest.forget_files(serves);
        let found = hello
            .number(1)
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(0);
        if hello.kind != frame::HELLO {
            return Err(Error::Protocol(format!(
                "the first message is of kind {}",
                hello.kind
            )));
        }
        if found < self.disks.len() {
            return Err(Error::DisksMissing {
                wanted: self.disks.len(),
                found,
                console: guest.console(),
            });
        }
        if self.network {
            guest.bring_network_up()?;
        }
        Ok(guest)
    }

    fn slots(&self, files: &Scratch) -> Vec<Slot> {
        let disks = self.disks.iter().filter(|disk| disk.kind.is_usb()).count();
        let slot = |index| Slot {
            socket: files.path(&format!("{SLOT_PREFIX}{index}")),
            port: disks + index + 1,
            taken: Cell::new(false),
        };
        (0..self.usb_slots).map(slot).collect()
    }

    fn disk_args(&self, files: &Scratch) -> Result<Vec<String>, Error> {
        let (mut sata, mut usb) = (0, 0);
        let mut arguments = Vec::new();
        for (index, disk) in self.disks.iter().enumerate() {
            let port = match disk.kind {
                kind if kind.is_sata() => &mut sata,
                kind if kind.is_usb() => &mut usb,
                _ => &mut 0,
            };
            let file = match &disk.image {
                Some(path) => path.clone(),
                None => {
                    let path = files.path(&format!("disk{index}"));
                    File::create_new(&path)
                        .and_then(|file| file.set_len(disk.size_bytes))
                        .map_err(Error::io(format!("creating {}", path.display())))?;
                    path
                }
            };
            arguments.extend(disk.qemu_args(index, *port, &file));
            *port += 1;
        }
        usb += self.usb_slots;
        if sata > MAX_SATA_DISKS || usb > USB_PORTS {
            return Err(Error::Usage(format!(
                "a guest has room for {MAX_SATA_DISKS} SATA disks and {USB_PORTS} USB disks or slots, not for {sata} and {usb}"
            )));
        }
        Ok(arguments)
    }
}

/// QEMU listens on the slot's socket, and again when the peer has gone.
fn slot_args(slot: &Slot) -> [String; 4] {
    let Slot { socket, port, .. } = slot;
    let socket = socket.display().to_string().replace(',', ",,");
    [
        "-chardev".to_owned(),
        format!("socket,id=peer{port},path={socket},server=on,wait=off"),
        "-device".to_owned(),
        format!("usb-redir,id=slot{port},chardev=peer{port},bus=xhci.0,port={port}"),
    ]
}

/// A directory for the files of one guest, removed when dropped.
pub(crate) struct Scratch {
    dir: PathBuf,
}

impl Scratch {
    pub fn new() -> Result<Self, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        Self::sweep();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("{SCRATCH_PREFIX}{}-{count}", std::process::id()));
        fs::create_dir(&dir).map_err(Error::io(format!("creating {}", dir.display())))?;
        Ok(Self { dir })
    }

    /// Removes what processes have left that were killed while their guest booted.
    fn sweep() {
        for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let owner = name
                .strip_prefix(SCRATCH_PREFIX)
                .and_then(|rest| rest.split_once('-'));
            let owner = owner.and_then(|(pid, _)| pid.parse::<u32>().ok());
            if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Removes what is not the socket of a slot.
    pub fn keep_slots(&self) {
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            if !entry.file_name().to_string_lossy().starts_with(SLOT_PREFIX) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The running emulator; killed when dropped.
pub(crate) struct Qemu {
    child: Child,
    console: File,
    stderr: File,
}

impl Qemu {
    /// Everything on the guest's console so far.
    pub fn console(&self) -> String {
        everything_in(&self.console)
    }

    /// Everything it has said itself.
    pub fn messages(&self) -> String {
        everything_in(&self.stderr)
    }

    /// Waits for its end up to that long.
    pub fn wait(&mut self, limit: Duration) -> Option<std::process::ExitStatus> {
        let until = Instant::now() + limit;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() > until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The guest's end of the port is closed: what became of it?
    pub fn post_mortem(&mut self) -> Error {
        let status = self.wait(Duration::from_secs(5));
        let console = self.console();
        if console.contains("Kernel panic") {
            return Error::GuestPanicked {
                console: tail(&console),
            };
        }
        Error::QemuExited {
            status: status.map_or("no exit status".to_owned(), |status| status.to_string()),
            stderr: tail(&self.messages()),
            console: tail(&console),
        }
    }

    /// Ends it now.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        self.kill();
    }
}

fn everything_in(mut file: &File) -> String {
    let mut bytes = Vec::new();
    // Whoever writes has a position of its own or appends.
    let _ = file.seek(SeekFrom::Start(0));
    let _ = file.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The last 40 lines, which is where a console says what went wrong.
pub(crate) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines
        .get(lines.len().saturating_sub(40)..)
        .unwrap_or_default()
        .join("\n")
}
