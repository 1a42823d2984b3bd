//! Putting a guest together and booting it.

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
use crate::guest::Guest;
use crate::initrd::initrd;
use crate::setup::{self, QEMU};

/// The kernel's command line, without the number of disks.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 nokaslr mitigations=off tsc=reliable no_timer_check \
                                random.trust_cpu=on log_buf_len=1M rdinit=/init";
/// Names of directories for a guest's files start so; the process's number follows, then a count.
const SCRATCH_PREFIX: &str = "drivethru-vm-";
/// The SATA ports of the machine.
const MAX_SATA_DISKS: usize = 6;
/// The ports of the USB controller.
const MAX_USB_DISKS: usize = 12;

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
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            disks: Vec::new(),
            memory_mib: 1024,
            boot_timeout: Duration::from_secs(120),
            qemu_arguments: Vec::new(),
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

    /// More arguments for QEMU. The USB controller is called `xhci` there, its bus `xhci.0`; disks take its lowest ports.
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
            .args(["-device", "qemu-xhci,id=xhci,p2=12,p3=12"])
            .args(self.disk_args(&files)?)
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

        let (guest, hello) = Guest::first_words(qemu, ours, self.boot_timeout, started)?;
        // All the files are open by now, so that nothing stays behind even if this process is killed.
        drop(files);
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
        Ok(guest)
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
        if sata > MAX_SATA_DISKS || usb > MAX_USB_DISKS {
            return Err(Error::Usage(format!(
                "a guest has room for {MAX_SATA_DISKS} SATA and {MAX_USB_DISKS} USB disks, not for {sata} and {usb}"
            )));
        }
        Ok(arguments)
    }
}

/// A directory for the files of one guest, removed when dropped.
struct Scratch {
    dir: PathBuf,
}

impl Scratch {
    fn new() -> Result<Self, Error> {
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

    fn path(&self, name: &str) -> PathBuf {
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
            stderr: tail(&everything_in(&self.stderr)),
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
