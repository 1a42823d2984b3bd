//! Process 1 of the guest: loads the modules, mounts the host's root, then runs what the host asks for over a
//! virtio-serial port.
//!
//! One static program instead of a shell script, because forks are what costs under emulation, and because the time between
//! fork and exit of a command can be taken here to the microsecond.
#![cfg(target_os = "linux")]

#[path = "../src/frame.rs"]
mod frame;

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_long, c_short, c_ulong, c_void};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use frame::Message;

const PORT: &str = "/dev/vport0p1";
const HOST_ROOT: &str = "/hostroot";
const TRACING: &str = "/sys/kernel/tracing";
const CDB_TRACE: &str = "/sys/kernel/tracing/instances/cdb";
const PATH_IN_GUEST: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Disks that have not appeared after this time will not.
const DISKS_WAIT: Duration = Duration::from_secs(30);

/// So often it is looked whether anybody waits for answers.
const HOST_CHECK_INTERVAL: Duration = Duration::from_secs(1);

type Outcome<T> = Result<T, String>;

fn main() {
    if std::process::id() != 1 {
        eprintln!("this is the init of drivethru-vm's guest; it does nothing elsewhere");
        std::process::exit(2);
    }
    if let Err(why) = serve() {
        eprintln!("guest init: {why}");
    }
    power_off();
}

fn serve() -> Outcome<()> {
    mount("proc", "/proc", "proc", "")?;
    let started_us = uptime_us();
    mount("sysfs", "/sys", "sysfs", "")?;
    mount("devtmpfs", "/dev", "devtmpfs", "mode=0755")?;
    load_listed_modules()?;
    mount(
        "hostroot",
        HOST_ROOT,
        "9p",
        "trans=virtio,version=9p2000.L,cache=loose,msize=512000",
    )?;
    furnish().map_err(|error| format!("furnishing the root: {error}"))?;
    let disks_found = wait_for_disks(disks_expected());

    let mut port = OpenOptions::new()
        .read(true)
        .write(true)
        .open(PORT)
        .map_err(|error| format!("{PORT}: {error}"))?;
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    leave_with_the_host(port.as_raw_fd());
    let hello = [
        release.trim().to_owned(),
        disks_found.to_string(),
        started_us.to_string(),
        uptime_us().to_string(),
    ];
    Message::new(frame::HELLO, hello)
        .write_to(&mut port)
        .map_err(|error| format!("{PORT}: {error}"))?;
    loop {
        let request = Message::read_from(&mut port).map_err(|error| format!("{PORT}: {error}"))?;
        let answer = match request.kind {
            frame::RUN => run(&request),
            frame::DISKS => Ok(text(disks())),
            frame::USB => Ok(text(usb_devices())),
            frame::DMESG => kernel_log(request.number(0).unwrap_or(0)).map(text),
            frame::INSMOD => load_module(&request).map(|()| text(String::new())),
            frame::NETWORK => network(&request.text(0), &request.text(1)).map(|()| text(String::new())),
            frame::POWEROFF => return Ok(()),
            kind => Err(format!("unknown request {kind}")),
        };
        let answer = answer.unwrap_or_else(|why| Message::new(frame::FAILED, [why]));
        answer
            .write_to(&mut port)
            .map_err(|error| format!("{PORT}: {error}"))?;
    }
}

/// Powers off when the host's end of the port is closed: if that process was killed, nobody else would end this guest. (Reading
/// ends by itself then, but writing blocks, and a command may run for long.) The port stays open as long as this program runs.
fn leave_with_the_host(port: c_int) {
    thread::spawn(move || {
        let mut poll_fd = PollFd {
            fd: port,
            events: 0,
            revents: 0,
        };
        loop {
            // SAFETY: one element, which outlives the call.
            let ready = unsafe { poll(&raw mut poll_fd, 1, 0) };
            if ready == 1 && poll_fd.revents & POLLHUP != 0 {
                power_off();
            }
            thread::sleep(HOST_CHECK_INTERVAL);
        }
    });
}

fn text(text: String) -> Message {
    Message::new(frame::TEXT, [text])
}

// --- the way up

/// `/modules/list` holds a path and parameters a line, dependencies in front.
fn load_listed_modules() -> Outcome<()> {
    let list = fs::read_to_string("/modules/list").map_err(|error| format!("/modules/list: {error}"))?;
    for line in list.lines() {
        let (path, parameters) = line.split_once(' ').unwrap_or((line, ""));
        insert_module(path, parameters)?;
        // The memory that the file took in the root file system is free again.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// Makes the host's programs, libraries and data reachable under their own names, and what programs write to writable.
fn furnish() -> io::Result<()> {
    let host = Path::new(HOST_ROOT);
    for dir in ["/etc", "/var/lib", "/var/cache", "/var/log", "/run", "/tmp"] {
        fs::create_dir_all(dir)?;
    }
    for (at, options) in [("/run", "mode=0755"), ("/tmp", "mode=1777")] {
        mount("tmpfs", at, "tmpfs", options).map_err(io::Error::other)?;
    }
    fs::create_dir_all("/run/lock")?;
    fs::create_dir_all("/run/home")?;
    fs::create_dir_all("/tmp/var")?;
    symlink("/tmp/var", "/var/tmp")?;
    symlink("/run", "/var/run")?;
    symlink("/run/lock", "/var/lock")?;

    symlink("/proc/self/mounts", "/etc/mtab")?;
    fs::write("/etc/fstab", "")?;
    fs::write("/etc/hostname", "guest\n")?;
    for dir in ["etc", "var/lib", ""] {
        for entry in fs::read_dir(host.join(dir))? {
            let name = entry?.file_name();
            let here = Path::new("/").join(dir).join(&name);
            let there = host.join(dir).join(&name);
            if fs::symlink_metadata(&here).is_err() {
                // A link stays the link it was: /bin to usr/bin, /etc/alternatives entries to where they point.
                symlink(fs::read_link(&there).unwrap_or(there), here)?;
            }
        }
    }

    symlink("/proc/self/fd", "/dev/fd")?;
    for (number, name) in ["stdin", "stdout", "stderr"].iter().enumerate() {
        symlink(format!("/proc/self/fd/{number}"), Path::new("/dev").join(name))?;
    }
    for (what, at, kind) in [("tmpfs", "/dev/shm", "tmpfs"), ("devpts", "/dev/pts", "devpts")] {
        fs::create_dir_all(at)?;
        mount(what, at, kind, "").map_err(io::Error::other)?;
    }
    // Only the counting of CDBs needs it, and that says so when it is missing.
    let _ = mount("tracefs", TRACING, "tracefs", "");
    Ok(())
}

/// How many disks the host has plugged in: `vm.disks=N` on the kernel's command line.
fn disks_expected() -> usize {
    let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    line.split_whitespace()
        .find_map(|word| word.strip_prefix("vm.disks="))
        .and_then(|count| count.parse().ok())
        .unwrap_or(0)
}

/// Scanning is asynchronous: waits until so many disks are there and the kernel has finished with each.
fn wait_for_disks(expected: usize) -> usize {
    let until = Instant::now() + DISKS_WAIT;
    let mut log = KernelLog::open().ok();
    let mut attached = 0;
    loop {
        let found = disk_names();
        let scsi = found.iter().filter(|name| name.starts_with("sd")).count();
        let news = log.iter_mut().flatten();
        attached += news.filter(|record| record.contains("] Attached SCSI ")).count();
        let settled = found.len() >= expected && attached >= scsi;
        if settled || Instant::now() > until {
            return found.len();
        }
        thread::sleep(Duration::from_millis(20));
    }
}

// --- disks

fn disk_names() -> Vec<String> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with("sd") || name.starts_with("nvme"))
        .collect();
    names.sort();
    names
}

/// One line per disk: name, SCSI address (or `-`), its directory in sysfs, then every serial that sysfs knows for it, separated by
/// tabs. A USB disk has two, that of the bridge and that of the unit.
fn disks() -> String {
    let mut lines = String::new();
    for name in disk_names() {
        let device = fs::canonicalize(format!("/sys/block/{name}/device")).unwrap_or_default();
        let address = device
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let scsi = address.split(':').count() == 4;
        let address = if scsi { address } else { "-" };
        let _ = write!(lines, "{name}\t{address}\t{}", device.display());
        let mut serials = Vec::new();
        if let Ok(page) = fs::read(device.join("vpd_pg80")) {
            serials.push(
                String::from_utf8_lossy(page.get(4..).unwrap_or_default())
                    .trim()
                    .to_owned(),
            );
        }
        for dir in device
            .ancestors()
            .take_while(|dir| dir.starts_with("/sys/devices"))
        {
            if dir
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("usb"))
            {
                break; // the root hub, whose serial is the controller's address
            }
            if let Ok(serial) = fs::read_to_string(dir.join("serial")) {
                serials.push(serial.trim().to_owned());
                break;
            }
        }
        for serial in serials {
            let _ = write!(lines, "\t{serial}");
        }
        lines.push('\n');
    }
    lines
}

/// One line per USB device that is no root hub: its directory in sysfs, `vid:pid`, speed in Mbit/s, bus and device number, then
/// for each interface of the present configuration `class/subclass/protocol=driver`, separated by tabs.
fn usb_devices() -> String {
    let mut lines = String::new();
    let entries = fs::read_dir("/sys/bus/usb/devices")
        .into_iter()
        .flatten()
        .flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let name = |path: &Path| {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let word = |path: &Path, what: &str| {
        let text = fs::read_to_string(path.join(what)).unwrap_or_default();
        text.trim().to_owned()
    };
    for path in &paths {
        let device = name(path);
        // 1-2 and 1-2.3 are devices, 1-2:1.0 is an interface, usb1 a root hub.
        if device.contains(':') || !device.contains('-') {
            continue;
        }
        let _ = write!(
            lines,
            "{}\t{}:{}\t{}\t{}:{}",
            fs::canonicalize(path).unwrap_or_default().display(),
            word(path, "idVendor"),
            word(path, "idProduct"),
            word(path, "speed"),
            word(path, "busnum"),
            word(path, "devnum"),
        );
        for interface in &paths {
            if !name(interface).starts_with(&format!("{device}:")) {
                continue;
            }
            let driver = fs::read_link(interface.join("driver")).unwrap_or_default();
            let _ = write!(
                lines,
                "\t{}/{}/{}={}",
                word(interface, "bInterfaceClass"),
                word(interface, "bInterfaceSubClass"),
                word(interface, "bInterfaceProtocol"),
                name(&driver)
            );
        }
        lines.push('\n');
    }
    lines
}

// --- running commands

fn run(request: &Message) -> Outcome<Message> {
    let timeout = Duration::from_millis(request.number(0).ok_or("no time-out")?);
    let counted_host = request.number(1);
    let program = request.fields.get(2).ok_or("no program")?;
    let arguments = request.fields.get(3..).unwrap_or_default();
    // Files, not pipes: a job left in the background cannot hold the answer back.
    let mut stdout = scratch("stdout")?;
    let mut stderr = scratch("stderr")?;
    let duplicate = |file: &File| file.try_clone().map_err(|error| error.to_string());

    let mut command = Command::new(std::ffi::OsStr::from_bytes(program));
    command
        .args(
            arguments
                .iter()
                .map(|argument| std::ffi::OsStr::from_bytes(argument)),
        )
        .env_clear()
        .envs(BTreeMap::from([
            ("PATH", PATH_IN_GUEST),
            ("HOME", "/run/home"),
            ("LANG", "C.UTF-8"),
            ("TERM", "dumb"),
            ("USER", "root"),
        ]))
        .current_dir("/run/home")
        .stdin(Stdio::null())
        .stdout(duplicate(&stdout)?)
        .stderr(duplicate(&stderr)?)
        .process_group(0);

    if counted_host.is_some() {
        start_trace()?;
    }
    let started = Instant::now();
    let name = String::from_utf8_lossy(program).into_owned();
    let child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
    let pid = child.id() as c_int;
    let (ended, watched) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        let late = matches!(
            watched.recv_timeout(timeout),
            Err(mpsc::RecvTimeoutError::Timeout)
        );
        if late {
            // SAFETY: no memory is involved; the process group is the command's own.
            unsafe { kill(-pid, SIGKILL) };
        }
        late
    });
    let (status, usage) = wait_for(pid)?;
    let elapsed = started.elapsed();
    let _ = ended.send(());
    let timed_out = watchdog.join().unwrap_or(false);
    let trace = match counted_host {
        Some(host) => end_trace(host)?,
        None => String::new(),
    };

    let code = if status & 0x7f == 0 {
        (status >> 8) & 0xff
    } else {
        128 + (status & 0x7f)
    };
    Ok(Message::new(
        frame::DONE,
        [
            code.to_string().into_bytes(),
            u8::from(timed_out).to_string().into_bytes(),
            elapsed.as_nanos().to_string().into_bytes(),
            usage.user_us.to_string().into_bytes(),
            usage.system_us.to_string().into_bytes(),
            written(&mut stdout)?,
            written(&mut stderr)?,
            trace.into_bytes(),
        ],
    ))
}

/// A file without a name in memory.
fn scratch(name: &str) -> Outcome<File> {
    let path = PathBuf::from("/run").join(format!(".{name}"));
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create_new(true)
        .open(&path)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    fs::remove_file(&path).map_err(|error| error.to_string())?;
    Ok(file)
}

fn written(file: &mut File) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))
        .and_then(|_| file.read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

struct Usage {
    user_us: u64,
    system_us: u64,
}

/// Waits for this child, and buries whatever else has been left to process 1.
fn wait_for(pid: c_int) -> Outcome<(c_int, Usage)> {
    loop {
        let mut status: c_int = 0;
        let mut usage = Rusage::default();
        // SAFETY: both pointers are to locals that outlive the call, and `Rusage` has the kernel's layout and size.
        let ended = unsafe { wait4(-1, &raw mut status, 0, &raw mut usage) };
        if ended == pid {
            let us = |[seconds, us]: [c_long; 2]| seconds as u64 * 1_000_000 + us as u64;
            let usage = Usage {
                user_us: us(usage.user),
                system_us: us(usage.system),
            };
            return Ok((status, usage));
        }
        let error = io::Error::last_os_error();
        if ended < 0 && error.kind() != io::ErrorKind::Interrupted {
            return Err(format!("waiting for the command: {error}"));
        }
    }
}

// --- counting CDBs

fn start_trace() -> Outcome<()> {
    let fail = |error: io::Error| format!("tracing SCSI commands: {error}");
    if !Path::new(CDB_TRACE).exists() {
        fs::create_dir(CDB_TRACE).map_err(fail)?;
        fs::write(format!("{CDB_TRACE}/buffer_size_kb"), "4096").map_err(fail)?;
    }
    File::create(format!("{CDB_TRACE}/trace")).map_err(fail)?;
    fs::write(
        format!("{CDB_TRACE}/events/scsi/scsi_dispatch_cmd_start/enable"),
        "1",
    )
    .map_err(fail)
}

/// The CDBs that were handed to that host's driver, one a line in hex.
fn end_trace(host: u64) -> Outcome<String> {
    let fail = |error: io::Error| format!("tracing SCSI commands: {error}");
    fs::write(
        format!("{CDB_TRACE}/events/scsi/scsi_dispatch_cmd_start/enable"),
        "0",
    )
    .map_err(fail)?;
    let trace = fs::read_to_string(format!("{CDB_TRACE}/trace")).map_err(fail)?;
    let counts = trace
        .lines()
        .find_map(|line| line.split_once("entries-in-buffer/entries-written:"))
        .and_then(|(_, rest)| rest.split_whitespace().next()?.split_once('/'));
    if counts.is_none_or(|(kept, written)| kept != written) {
        return Err("tracing SCSI commands: the buffer lost some".to_owned());
    }
    let wanted = format!("host_no={host} ");
    let raw = |line: &str| Some(line.rsplit_once(" raw=")?.1.trim_end_matches(')').to_owned() + "\n");
    trace
        .lines()
        .filter(|line| line.contains(&wanted))
        .map(|line| raw(line).ok_or_else(|| format!("tracing SCSI commands: not understood: {line}")))
        .collect()
}

// --- the kernel

fn uptime_us() -> u64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds: f64 = text
        .split(' ')
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0.0);
    (seconds * 1e6) as u64
}

fn c_string(text: &str) -> Outcome<CString> {
    CString::new(text).map_err(|_| format!("{text:?} holds a NUL"))
}

fn mount(what: &str, at: &str, kind: &str, options: &str) -> Outcome<()> {
    let _ = fs::create_dir_all(at);
    let (source, target, fs_type, data) = (
        c_string(what)?,
        c_string(at)?,
        c_string(kind)?,
        c_string(options)?,
    );
    let flags = if kind == "9p" { MS_RDONLY } else { 0 };
    // SAFETY: four NUL-terminated strings that outlive the call.
    let failed = unsafe {
        mount_raw(
            source.as_ptr(),
            target.as_ptr(),
            fs_type.as_ptr(),
            flags,
            data.as_ptr().cast(),
        )
    };
    match failed {
        0 => Ok(()),
        _ => Err(format!("mounting {what} on {at}: {}", io::Error::last_os_error())),
    }
}

fn insert_module(path: &str, parameters: &str) -> Outcome<()> {
    let file = File::open(path).map_err(|error| format!("{path}: {error}"))?;
    let parameters = c_string(parameters)?;
    // SAFETY: finit_module(fd, const char *parameters, int flags): the descriptor and the string outlive the call.
    let failed = unsafe {
        syscall(
            SYS_FINIT_MODULE,
            file.as_raw_fd(),
            parameters.as_ptr(),
            0 as c_int,
        )
    };
    let error = io::Error::last_os_error();
    if failed == 0 || error.kind() == io::ErrorKind::AlreadyExists {
        Ok(())
    } else {
        Err(format!("module {path}: {error}"))
    }
}

/// A module that is there already is not read again. (One that is built in has no file either, and is not asked for.)
fn load_module(request: &Message) -> Outcome<()> {
    let loaded = Path::new("/sys/module").join(request.text(0));
    if loaded.exists() {
        return Ok(());
    }
    insert_module(&request.text(1), &request.text(2))
}

/// The records of the kernel's log from this sequence number on, a line each: `level,sequence,microseconds,flags;text`, in
/// which what cannot be printed is written `\xHH`.
fn kernel_log(from: u64) -> Outcome<String> {
    let sequence = |record: &str| record.split(',').nth(1)?.parse::<u64>().ok();
    Ok(KernelLog::open()?
        .filter(|record| sequence(record).is_some_and(|number| number >= from))
        .fold(String::new(), |lines, record| lines + &record + "\n"))
}

/// The kernel's log, record by record, up to the last there is; later more.
struct KernelLog {
    file: File,
}

impl KernelLog {
    fn open() -> Outcome<Self> {
        let path = "/dev/kmsg";
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(O_NONBLOCK)
            .open(path)
            .map_err(|error| format!("{path}: {error}"))?;
        Ok(Self { file })
    }
}

impl Iterator for KernelLog {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut record = [0; 8192];
        loop {
            match self.file.read(&mut record) {
                Ok(len) => {
                    // Behind the first line stands of which device it speaks.
                    let text = String::from_utf8_lossy(record.get(..len)?).into_owned();
                    return Some(text.lines().next()?.to_owned());
                }
                // The next record was overwritten before it was read.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                Err(_) => return None,
            }
        }
    }
}

/// Gives the loopback device and the network card addresses, and switches them on.
fn network(address: &str, mask: &str) -> Outcome<()> {
    let names = fs::read_dir("/sys/class/net").map_err(|error| format!("/sys/class/net: {error}"))?;
    let card = names
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .find(|name| name != "lo")
        .ok_or("there is no network card")?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(|error| format!("a socket: {error}"))?;
    for (name, address, mask) in [("lo", "127.0.0.1", "255.0.0.0"), (&card, address, mask)] {
        let socket_address = |text: &str| {
            let address: Ipv4Addr = text.parse().map_err(|_| format!("{text:?} is no IPv4 address"))?;
            let mut bytes = [0; 16];
            bytes[0] = AF_INET;
            bytes[4..8].copy_from_slice(&address.octets());
            Ok::<_, String>(bytes)
        };
        let mut flags = [0; 16];
        flags[0] = IFF_UP;
        let steps = [
            (SIOCSIFADDR, socket_address(address)?),
            (SIOCSIFNETMASK, socket_address(mask)?),
            (SIOCSIFFLAGS, flags),
        ];
        for (request, value) in steps {
            let mut ask = InterfaceRequest {
                name: [0; 16],
                value,
                rest: [0; 8],
            };
            let room = ask.name.get_mut(..name.len()).filter(|room| room.len() < 16);
            room.ok_or("a name that is too long")?
                .copy_from_slice(name.as_bytes());
            // SAFETY: the three requests read a `struct ifreq`, whose size and layout `ask` has, and which outlives the call.
            let failed = unsafe { ioctl(socket.as_raw_fd(), request, &raw const ask) };
            if failed != 0 {
                return Err(format!("network card {name}: {}", io::Error::last_os_error()));
            }
        }
    }
    Ok(())
}

fn power_off() -> ! {
    // SAFETY: takes a number and does not return; the file systems are all in memory or read-only.
    unsafe { reboot(RB_POWER_OFF) };
    std::process::exit(1);
}

const POLLHUP: c_short = 0x10;
const SIGKILL: c_int = 9;
const MS_RDONLY: c_ulong = 1;
const SYS_FINIT_MODULE: c_long = 313;
const O_NONBLOCK: c_int = 0o4000;
const AF_INET: u8 = 2;
const IFF_UP: u8 = 1;
const SIOCSIFFLAGS: c_ulong = 0x8914;
const SIOCSIFADDR: c_ulong = 0x8916;
const SIOCSIFNETMASK: c_ulong = 0x891c;
const RB_POWER_OFF: c_int = 0x4321_fedc;

/// `struct pollfd`.
#[repr(C)]
struct PollFd {
    fd: c_int,
    events: c_short,
    revents: c_short,
}

/// `struct ifreq`: a name, then what the request wants, of which a socket address is the longest that is needed here.
#[repr(C, align(8))]
struct InterfaceRequest {
    name: [u8; 16],
    value: [u8; 16],
    rest: [u8; 8],
}

const _: () = assert!(size_of::<InterfaceRequest>() == 40);

/// `struct rusage`: two times and fourteen counters that nobody here needs.
#[repr(C)]
#[derive(Default)]
struct Rusage {
    user: [c_long; 2],
    system: [c_long; 2],
    counters: [c_long; 14],
}

const _: () = assert!(size_of::<Rusage>() == 144);

unsafe extern "C" {
    #[link_name = "mount"]
    fn mount_raw(
        source: *const c_char,
        target: *const c_char,
        fs_type: *const c_char,
        flags: c_ulong,
        data: *const c_void,
    ) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn ioctl(fd: c_int, request: c_ulong, ...) -> c_int;
    fn reboot(how: c_int) -> c_int;
    fn poll(fds: *mut PollFd, count: c_ulong, timeout_ms: c_int) -> c_int;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn wait4(pid: c_int, status: *mut c_int, options: c_int, usage: *mut Rusage) -> c_int;
}
