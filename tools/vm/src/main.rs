//! `drivethru-vm setup | run | bench`.

mod bench;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use drivethru_vm::{Disk, Error, Guest, Served, ServedDevice, Vm, Way, setup};

const USAGE: &str = "\
usage: drivethru-vm setup
       drivethru-vm run [--disk KIND[,size=64M][,serial=X][,model=X][,firmware=X][,image=FILE]]...
                        [--device [usbip:]PROFILE[,OPTION[=VALUE]]...]... [--program DRIVETHRU]
                        [--timeout SECONDS] [--keep-console FILE] (-- COMMAND... | --script FILE)
       drivethru-vm bench --drivethru FILE [--rounds N] [--disk ahci]

KIND is ahci, ahci-ssd, usb-bot, usb-uas or nvme; PROFILE is one of `drivethru sim list`. run exits with the command's status; 125 if the guest failed,
77 if something is not installed (setup provides it), 2 for wrong usage.";

/// The exit codes of our own.
const FAILED: u8 = 125;
/// A served device that has shown no disk by then will not.
const DISK_LIMIT: Duration = Duration::from_secs(20);
const UNAVAILABLE: u8 = 77;
const USED_WRONGLY: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("setup") => setup::setup(&mut |text| eprintln!("{text}")).map(|_| 0),
        Some("run") => Run::parse(arguments.get(1..).unwrap_or_default()).and_then(Run::run),
        Some("bench") => {
            bench::Bench::parse(arguments.get(1..).unwrap_or_default()).and_then(bench::Bench::run)
        }
        Some("--help" | "-h" | "help") => {
            println!("{USAGE}");
            Ok(0)
        }
        _ => Err(Error::Usage(USAGE.to_owned())),
    };
    ExitCode::from(done.unwrap_or_else(|error| {
        eprintln!("drivethru-vm: {error}");
        match error {
            Error::Unavailable(_) => UNAVAILABLE,
            Error::Usage(_) => USED_WRONGLY,
            _ => FAILED,
        }
    }))
}

/// One guest for one command.
#[derive(Default)]
struct Run {
    disks: Vec<Disk>,
    devices: Vec<Served>,
    program: Option<PathBuf>,
    timeout: Option<Duration>,
    keep_console: Option<PathBuf>,
    script: Option<PathBuf>,
    command: Vec<String>,
}

impl Run {
    fn parse(arguments: &[String]) -> Result<Self, Error> {
        let mut run = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                run.command = words.by_ref().cloned().collect();
                break;
            }
            let value = words
                .next()
                .ok_or_else(|| Error::Usage(format!("{word} wants a value\n{USAGE}")))?;
            match word.as_str() {
                "--disk" => run.disks.push(value.parse()?),
                "--device" => run.devices.push(value.parse()?),
                "--program" => run.program = Some(value.into()),
                "--timeout" => run.timeout = Some(Duration::from_secs(number(word, value)?)),
                "--keep-console" => run.keep_console = Some(value.into()),
                "--script" => run.script = Some(value.into()),
                _ => return Err(Error::Usage(format!("unknown option {word}\n{USAGE}"))),
            }
        }
        if run.script.is_some() != run.command.is_empty() {
            return Err(Error::Usage(format!("either a command or --script\n{USAGE}")));
        }
        Ok(run)
    }

    fn run(self) -> Result<u8, Error> {
        let mut builder = Vm::builder();
        for disk in &self.disks {
            builder = builder.disk(disk.clone());
        }
        let by = |way| {
            self.devices
                .iter()
                .filter(move |device| device.way() == way)
                .count()
        };
        builder = builder.usb_slots(by(Way::UsbRedir));
        if by(Way::UsbIp) > 0 {
            builder = builder.network();
        }
        if let Some(program) = &self.program {
            builder = builder.program(program);
        }
        let guest = builder.boot()?;
        let devices = self
            .devices
            .iter()
            .map(|device| attach(&guest, device))
            .collect::<Result<Vec<_>, _>>()?;
        let timeout = self.timeout.unwrap_or(Duration::from_secs(300));
        let ran = match &self.script {
            Some(script) => guest.run_args(&["/bin/sh", &Guest::host_path(script)], timeout),
            None => {
                let words: Vec<&str> = self.command.iter().map(String::as_str).collect();
                guest.run_args(&words, timeout)
            }
        };
        if let Some(path) = &self.keep_console {
            write_console(&guest, path)?;
        }
        let output = ran?;
        let doing = || {
            |source| Error::Io {
                what: "writing the command's output".to_owned(),
                source,
            }
        };
        std::io::stdout().write_all(&output.stdout).map_err(doing())?;
        std::io::stderr().write_all(&output.stderr).map_err(doing())?;
        drop(devices);
        guest.shutdown()?;
        Ok(u8::try_from(output.status).unwrap_or(FAILED))
    }
}

/// Plugs it in, and tells what became of it. A device without a disk may be what is wanted.
fn attach<'a>(guest: &'a Guest, served: &Served) -> Result<ServedDevice<'a>, Error> {
    let device = guest.attach(served)?;
    match device.wait_for_disk(DISK_LIMIT) {
        Ok(disk) => {
            let driver = device.driver()?.unwrap_or_else(|| "no driver".to_owned());
            eprintln!("drivethru-vm: {} is {}, {driver}", served.spec(), disk.node);
        }
        Err(Error::NotSo { .. }) => eprintln!("drivethru-vm: {} shows no disk", served.spec()),
        Err(error) => return Err(error),
    }
    Ok(device)
}

fn write_console(guest: &Guest, path: &Path) -> Result<(), Error> {
    std::fs::write(path, guest.console()).map_err(|source| Error::Io {
        what: format!("writing {}", path.display()),
        source,
    })
}

fn number(option: &str, value: &str) -> Result<u64, Error> {
    value
        .parse()
        .map_err(|_| Error::Usage(format!("{option} wants a number, not {value:?}")))
}
