//! `sim list`, `sim show`, `sim serve` and `sim control`.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use super::args::{ServeArgs, SimCommand};
use super::exit::Exit;
use super::{Context, Stop, complain, decode, note, print};
use crate::report::table;
use crate::sim;
use crate::sim::serve::{self, Address, AskError, Config, ServeError, Server};
use crate::sim::usb::UsbDevice;

pub(super) fn run(context: &Context, command: &SimCommand) -> Result<Exit, Stop> {
    match command {
        SimCommand::List => {
            let profiles = sim::profiles();
            if context.common.json {
                context.print_json_pretty(&serde_json::json!({
                    "schema": "drivethru-sim-list/1",
                    "schema_version": 1,
                    "profiles": profiles,
                    "options": sim::options()
                        .iter()
                        .map(|(name, does)| serde_json::json!({"name": name, "does": does}))
                        .collect::<Vec<_>>(),
                }))?;
                return Ok(Exit::Done);
            }
            let rows = profiles
                .into_iter()
                .map(|p| vec![format!("sim:{}", p.name), p.drive, p.bridge, p.title])
                .collect();
            print(&table(&["Name", "Drive", "Bridge", "What it is"], rows))?;
            print("\nOptions, after the name: sim:NAME,option=value,option=value\n")?;
            let rows = sim::options()
                .iter()
                .map(|(name, does)| vec![(*name).to_owned(), (*does).to_owned()])
                .collect();
            print(&table(&["Option", "What it does"], rows))?;
        }
        SimCommand::Show { profile } => {
            let spec = profile.strip_prefix("sim:").unwrap_or(profile);
            let document = sim::show(spec).map_err(|e| Stop::BadInput(e.to_string()))?;
            let value = serde_json::to_value(&document).map_err(|e| Stop::Output(e.into()))?;
            if context.common.json {
                context.print_json_pretty(&value)?;
            } else {
                print(&decode::render_text(&value))?;
            }
        }
        SimCommand::Serve(args) => return serve(args),
        SimCommand::Control { address, words } => return control(address, &words.join(" ")),
    }
    Ok(Exit::Done)
}

/// The file of `--log`; says once when it cannot be written any more.
struct LogFile {
    path: PathBuf,
    file: File,
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file
            .write(bytes)
            .inspect_err(|e| note(&format!("{}: {e}; the log ends here", self.path.display())))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn serve(args: &ServeArgs) -> Result<Exit, Stop> {
    let spec = args.profile.strip_prefix("sim:").unwrap_or(&args.profile);
    let mut device = UsbDevice::open(spec).map_err(|e| Stop::BadInput(e.to_string()))?;
    if let Some(path) = &args.log {
        let file = sim::own_file::open(File::options().append(true), path)
            .map_err(|e| Stop::BadInput(format!("{}: {e}", path.display())))?;
        let path = path.clone();
        device.target_mut().set_log_sink(Box::new(LogFile { path, file }));
    }
    if args.unplugged {
        device.unplug(Duration::ZERO);
    }
    let config = Config {
        usbip: args.usbip.clone(),
        usbredir: args.usbredir.clone(),
        call: args.connect,
        control: args.control.clone(),
        once: args.once,
    };
    let server = match Server::bind(device, &config, say) {
        Ok(server) => server,
        Err(error @ (ServeError::NotTcp { .. } | ServeError::NoFace)) => {
            return Err(Stop::Usage(error.to_string()));
        }
        Err(error) => {
            complain(&error.to_string(), &[]);
            return Ok(Exit::NoDevice);
        }
    };
    let stopper = server.stopper();
    let mut signals = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ])?;
    let handle = signals.handle();
    let waiting = std::thread::spawn(move || {
        for (count, signal) in signals.forever().enumerate() {
            if count > 0 {
                // Whoever asks twice does not want to wait for a peer.
                std::process::exit(128 + signal);
            }
            stopper.stop();
        }
    });
    let outcome = server.run();
    handle.close();
    // A thread that panicked has said so.
    let _ = waiting.join();
    match outcome {
        Ok(summary) => {
            say(&format!("sim:{spec}: {summary}"));
            Ok(Exit::Done)
        }
        Err(error) => {
            complain(&error.to_string(), &[]);
            Ok(Exit::Failure)
        }
    }
}

/// A line of the server on stderr; others parse these, so that nothing stands before them.
fn say(line: &str) {
    // Nothing is left to tell when stderr is closed.
    let _ = io::stderr().write_all(format!("{}\n", crate::text::for_terminal(line)).as_bytes());
}

fn control(address: &Address, command: &str) -> Result<Exit, Stop> {
    match serve::ask(address, command) {
        Ok(answer) => {
            print(&format!("{answer}\n"))?;
            let document: Option<serde_json::Value> = serde_json::from_str(&answer).ok();
            let obeyed = document.is_some_and(|d| d.get("ok") == Some(&serde_json::Value::Bool(true)));
            Ok(if obeyed { Exit::Done } else { Exit::Usage })
        }
        Err(error @ AskError::NotOneLine) => Err(Stop::BadInput(error.to_string())),
        Err(error) => {
            complain(
                &error.to_string(),
                &["is `drivethru sim serve ... --control` running there?".to_owned()],
            );
            Ok(Exit::Failure)
        }
    }
}
