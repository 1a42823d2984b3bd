//! SCT pages and device statistics.

use drivethru::ata::devstat::DeviceStatistics;
use drivethru::ata::sct::{SctStatus, TempHistory};
use serde_json::json;

use super::{Compare, at};
use crate::{Case, Tally};

pub(super) fn sct_status(case: &Case, tally: &mut Tally) {
    let mut c = Compare {
        kind: "sct-status",
        case: &case.name,
        tally,
    };
    let ours = match SctStatus::parse(&case.bytes) {
        Ok(status) => serde_json::to_value(status).unwrap(),
        Err(error) => return c.wrong(&error.to_string()),
    };
    let smartctl = &case.expect["smartctl_7.3"];
    c.fields(
        &ours,
        smartctl,
        &[
            ("/format_version", "/format_version"),
            ("/sct_version", "/sct_version"),
            ("/state/code", "/device_state/value"),
            ("/temperature/celsius", "/temperature/current"),
            ("/temperature/power_cycle_min", "/temperature/power_cycle_min"),
            ("/temperature/power_cycle_max", "/temperature/power_cycle_max"),
            ("/temperature/lifetime_min", "/temperature/lifetime_min"),
            ("/temperature/lifetime_max", "/temperature/lifetime_max"),
            ("/temperature/op_limit_max", "/temperature/op_limit_max"),
            ("/temperature/under_limit_count", "/temperature/under_limit_count"),
            ("/temperature/over_limit_count", "/temperature/over_limit_count"),
        ],
    );
    if let Some(bytes) = smartctl["vendor_specific"].as_array() {
        let theirs: Vec<String> = bytes
            .iter()
            .map(|b| format!("{:02x}", b.as_u64().unwrap_or_default()))
            .collect();
        c.equal(
            "vendor bytes",
            &at(&ours, "/vendor_hex"),
            &json!(theirs.join(" ")),
        );
    }
    if smartctl["temperature"]["current"] == json!(0) {
        c.equal("plausible", &ours["temperature"]["plausible"], &json!(false));
    }
}

pub(super) fn sct_temp_history(case: &Case, tally: &mut Tally) {
    let mut c = Compare {
        kind: "sct-temp-history",
        case: &case.name,
        tally,
    };
    let ours = match TempHistory::parse(&case.bytes) {
        Ok(history) => serde_json::to_value(history).unwrap(),
        Err(error) => return c.wrong(&error.to_string()),
    };
    c.fields(
        &ours,
        &case.expect["smartctl_7.3"],
        &[
            ("/format_version", "/version"),
            ("/sampling_minutes", "/sampling_period_minutes"),
            ("/interval_minutes", "/logging_interval_minutes"),
            ("/op_limit_min", "/temperature/op_limit_min"),
            ("/op_limit_max", "/temperature/op_limit_max"),
            ("/limit_min", "/temperature/limit_min"),
            ("/limit_max", "/temperature/limit_max"),
            ("/size", "/size"),
            ("/index", "/index"),
            ("/samples", "/table"),
        ],
    );
}

pub(super) fn devstat(case: &Case, tally: &mut Tally) {
    let mut c = Compare {
        kind: "devstat",
        case: &case.name,
        tally,
    };
    let ours = match DeviceStatistics::parse(&case.bytes) {
        Ok(log) => serde_json::to_value(log).unwrap(),
        Err(error) => return c.wrong(&error.to_string()),
    };
    let theirs = case.expect["smartctl_7.3"]["pages"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let pages = ours["pages"].as_array().cloned().unwrap_or_default();
    c.equal("number of pages", &json!(pages.len()), &json!(theirs.len()));
    for (page, their_page) in pages.iter().zip(&theirs) {
        c.fields(
            page,
            their_page,
            &[
                ("/number", "/number"),
                ("/name", "/name"),
                ("/revision", "/revision"),
            ],
        );
        let rows = page["table"].as_array().cloned().unwrap_or_default();
        let their_rows = their_page["table"].as_array().cloned().unwrap_or_default();
        c.equal("number of rows", &json!(rows.len()), &json!(their_rows.len()));
        for (row, their_row) in rows.iter().zip(&their_rows) {
            c.fields(
                row,
                their_row,
                &[
                    ("/offset_bytes", "/offset"),
                    ("/name", "/name"),
                    ("/size_bytes", "/size"),
                    ("/value", "/value"),
                    ("/flags/value", "/flags/value"),
                    ("/flags/valid", "/flags/valid"),
                    ("/flags/normalized", "/flags/normalized"),
                    ("/flags/supports_dsn", "/flags/supports_dsn"),
                    ("/flags/monitored_condition_met", "/flags/monitored_condition_met"),
                ],
            );
        }
    }
}
