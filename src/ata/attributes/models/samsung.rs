//! Samsung SSDs.

use super::super::Meaning::{LinkErrors, UncorrectableSectors, Wear as Life};
use super::super::RawFormat::Raw48;
use super::super::Wear::LeftNormalized;
use super::{Family, count, row};

#[rustfmt::skip]
pub(super) static FAMILIES: &[Family] = &[
    // Capture: Samsung 850 EVO, 860 EVO. 177 counts down from 100 with the wear, as its maker's tool shows it.
    // Replay: the lines sold to computer makers, down to the names without the maker's.
    Family {
        models: &[
            "Samsung SSD *", "SAMSUNG SSD *", "SAMSUNG MZ*", "SAMSUNG 470 Series SSD", "Samsung Portable SSD T5",
            "MZ7PC*", "MZ7LM*", "MZ7KM*",
        ],
        firmware: "*",
        rows: &[
            count(170, "Unused_Rsvd_Blk_Ct_Chip"),
            count(171, "Program_Fail_Count_Chip"),
            count(172, "Erase_Fail_Count_Chip"),
            count(173, "Wear_Leveling_Count"),
            count(174, "Unexpect_Power_Loss_Ct"),
            row(177, "Wear_Leveling_Count", Raw48, Life(LeftNormalized)),
            row(187, "Uncorrectable_Error_Cnt", Raw48, UncorrectableSectors),
            count(191, "Unknown_Samsung_Attr"),
            count(195, "ECC_Error_Rate"),
            row(199, "CRC_Error_Count", Raw48, LinkErrors),
            count(201, "Supercap_Status"),
            count(202, "Exception_Mode_Status"),
            count(234, "Unknown_Samsung_Attr"),
            count(235, "POR_Recovery_Count"),
            count(236, "Unknown_Samsung_Attr"),
            count(237, "Unknown_Samsung_Attr"),
            count(238, "Unknown_Samsung_Attr"),
            count(243, "SATA_Downshift_Ct"),
            count(244, "Thermal_Throttle_St"),
            count(245, "Timed_Workld_Media_Wear"),
            count(246, "Timed_Workld_RdWr_Ratio"),
            count(247, "Timed_Workld_Timer"),
            count(249, "NAND_Writes_1GiB"),
            count(250, "SATA_Iface_Downshift"),
            count(251, "NAND_Writes"),
        ],
    },
];
