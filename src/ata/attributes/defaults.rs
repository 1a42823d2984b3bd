//! Generic attributes: what a number means where nothing is known about the model.

use super::Meaning::{
    LinkErrors, Other, PendingSectors, PowerCycles, PowerOnTime, ReallocatedSectors, Temperature as Temp,
    UncorrectableSectors,
};
use super::Media::{Any, Disk, Flash};
use super::RawFormat::{Raw16Average16, Raw16Raw16, Raw24Raw8, Raw48, Temperature};
use super::{Definition, Meaning, Media, RawFormat};

const fn def(id: u8, name: &'static str, format: RawFormat, meaning: Meaning, media: Media) -> Definition {
    Definition {
        id,
        name,
        format,
        meaning,
        media,
    }
}

/// In the order of their numbers.
#[rustfmt::skip]
static ROWS: &[Definition] = &[
    def(1, "Raw_Read_Error_Rate", Raw48, Other, Any),
    def(2, "Throughput_Performance", Raw48, Other, Any),
    def(3, "Spin_Up_Time", Raw16Average16, Other, Any),
    def(4, "Start_Stop_Count", Raw48, Other, Any),
    def(5, "Reallocated_Sector_Ct", Raw16Raw16, ReallocatedSectors, Any),
    def(6, "Read_Channel_Margin", Raw48, Other, Disk),
    def(7, "Seek_Error_Rate", Raw48, Other, Disk),
    def(8, "Seek_Time_Performance", Raw48, Other, Disk),
    def(9, "Power_On_Hours", Raw24Raw8, PowerOnTime, Any),
    def(10, "Spin_Retry_Count", Raw48, Other, Disk),
    def(11, "Calibration_Retry_Count", Raw48, Other, Disk),
    def(12, "Power_Cycle_Count", Raw48, PowerCycles, Any),
    def(13, "Read_Soft_Error_Rate", Raw48, Other, Any),
    def(22, "Helium_Level", Raw48, Other, Disk),
    def(23, "Helium_Condition_Lower", Raw48, Other, Disk),
    def(24, "Helium_Condition_Upper", Raw48, Other, Disk),
    def(175, "Program_Fail_Count_Chip", Raw48, Other, Flash),
    def(176, "Erase_Fail_Count_Chip", Raw48, Other, Flash),
    def(177, "Wear_Leveling_Count", Raw48, Other, Flash),
    def(178, "Used_Rsvd_Blk_Cnt_Chip", Raw48, Other, Flash),
    def(179, "Used_Rsvd_Blk_Cnt_Tot", Raw48, Other, Flash),
    def(180, "Unused_Rsvd_Blk_Cnt_Tot", Raw48, Other, Flash),
    def(181, "Program_Fail_Cnt_Total", Raw48, Other, Any),
    def(182, "Erase_Fail_Count_Total", Raw48, Other, Flash),
    def(183, "Runtime_Bad_Block", Raw48, Other, Any),
    def(184, "End-to-End_Error", Raw48, Other, Any),
    def(187, "Reported_Uncorrect", Raw48, UncorrectableSectors, Any),
    def(188, "Command_Timeout", Raw48, Other, Any),
    def(189, "High_Fly_Writes", Raw48, Other, Disk),
    def(190, "Airflow_Temperature_Cel", Temperature, Temp, Any),
    def(191, "G-Sense_Error_Rate", Raw48, Other, Disk),
    def(192, "Power-Off_Retract_Count", Raw48, Other, Any),
    def(193, "Load_Cycle_Count", Raw48, Other, Disk),
    def(194, "Temperature_Celsius", Temperature, Temp, Any),
    def(195, "Hardware_ECC_Recovered", Raw48, Other, Any),
    def(196, "Reallocated_Event_Count", Raw16Raw16, Other, Any),
    def(197, "Current_Pending_Sector", Raw48, PendingSectors, Any),
    def(198, "Offline_Uncorrectable", Raw48, UncorrectableSectors, Any),
    def(199, "UDMA_CRC_Error_Count", Raw48, LinkErrors, Any),
    def(200, "Multi_Zone_Error_Rate", Raw48, Other, Disk),
    def(201, "Soft_Read_Error_Rate", Raw48, Other, Disk),
    def(202, "Data_Address_Mark_Errs", Raw48, Other, Disk),
    def(203, "Run_Out_Cancel", Raw48, Other, Any),
    def(204, "Soft_ECC_Correction", Raw48, Other, Any),
    def(205, "Thermal_Asperity_Rate", Raw48, Other, Any),
    def(206, "Flying_Height", Raw48, Other, Disk),
    def(207, "Spin_High_Current", Raw48, Other, Disk),
    def(208, "Spin_Buzz", Raw48, Other, Disk),
    def(209, "Offline_Seek_Performnce", Raw48, Other, Disk),
    def(220, "Disk_Shift", Raw48, Other, Disk),
    def(221, "G-Sense_Error_Rate", Raw48, Other, Disk),
    def(222, "Loaded_Hours", Raw48, Other, Disk),
    def(223, "Load_Retry_Count", Raw48, Other, Disk),
    def(224, "Load_Friction", Raw48, Other, Disk),
    def(225, "Load_Cycle_Count", Raw48, Other, Disk),
    def(226, "Load-in_Time", Raw48, Other, Disk),
    def(227, "Torq-amp_Count", Raw48, Other, Disk),
    def(228, "Power-off_Retract_Count", Raw48, Other, Any),
    def(230, "Head_Amplitude", Raw48, Other, Disk),
    def(231, "Temperature_Celsius", Raw48, Temp, Disk),
    def(232, "Available_Reservd_Space", Raw48, Other, Any),
    def(233, "Media_Wearout_Indicator", Raw48, Other, Flash),
    def(240, "Head_Flying_Hours", Raw24Raw8, Other, Disk),
    def(241, "Total_LBAs_Written", Raw48, Other, Any),
    def(242, "Total_LBAs_Read", Raw48, Other, Any),
    def(250, "Read_Error_Retry_Rate", Raw48, Other, Any),
    def(254, "Free_Fall_Sensor", Raw48, Other, Disk),
];

/// The generic row for `id`.
pub(super) fn row(id: u8) -> Option<Definition> {
    ROWS.binary_search_by_key(&id, |row| row.id)
        .ok()
        .and_then(|i| ROWS.get(i))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted() {
        assert!(ROWS.is_sorted_by(|a, b| a.id < b.id));
        assert_eq!(row(194).map(|r| r.name), Some("Temperature_Celsius"));
        assert_eq!(row(14), None);
    }
}
