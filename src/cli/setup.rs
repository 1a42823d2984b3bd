//! `setup completions` and `setup man`, from the same source as the help.

use std::path::Path;

use clap::CommandFactory;

use super::args::{Cli, SetupCommand};
use super::exit::Exit;
use super::{Stop, print};

pub(super) fn run(command: &SetupCommand) -> Result<Exit, Stop> {
    let mut cli = Cli::command();
    match command {
        SetupCommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut cli, "drivethru", &mut script);
            print(&String::from_utf8_lossy(&script))?;
        }
        SetupCommand::Man { dir: None } => {
            let mut page = Vec::new();
            clap_mangen::Man::new(cli).render(&mut page)?;
            print(&String::from_utf8_lossy(&page))?;
        }
        SetupCommand::Man { dir: Some(dir) } => write_pages(cli, dir)?,
    }
    Ok(Exit::Done)
}

fn write_pages(cli: clap::Command, dir: &Path) -> Result<(), Stop> {
    let failed = |e: std::io::Error| Stop::BadInput(format!("{}: {e}", dir.display()));
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(cli, dir).map_err(failed)
}
