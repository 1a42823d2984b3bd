//! `sim list` and `sim show`.

use super::args::SimCommand;
use super::exit::Exit;
use super::{Context, Stop, decode, print};
use crate::report::table;
use crate::sim;

pub(super) fn run(context: &Context, command: &SimCommand) -> Result<Exit, Stop> {
    match command {
        SimCommand::List => {
            let profiles = sim::profiles();
            if context.common.json {
                context.print_json_pretty(&serde_json::json!({
                    "schema": "drivethru-sim-list/1",
                    "schema_version": 1,
                    "profiles": profiles,
                }))?;
                return Ok(Exit::Done);
            }
            let rows = profiles
                .into_iter()
                .map(|p| vec![format!("sim:{}", p.name), p.drive, p.bridge, p.title])
                .collect();
            print(&table(&["Name", "Drive", "Bridge", "What it is"], rows))?;
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
    }
    Ok(Exit::Done)
}
