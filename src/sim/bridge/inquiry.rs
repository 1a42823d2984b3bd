//! INQUIRY, VPD pages and READ CAPACITY (SPC-4, SBC-3; SAT for page 89h).

use super::{Answer, Bridge, Inner};
use crate::sim::buf::{byte, padded, put, put_be16, put_be32, put_be64, put8};
use crate::wire::be16;

impl Bridge {
    /// Standard INQUIRY data, 36 bytes.
    pub fn standard_inquiry(&self) -> Vec<u8> {
        let p = &self.profile;
        let mut data = vec![0; 36];
        put8(&mut data, 1, u8::from(p.removable) << 7);
        put8(&mut data, 2, p.version);
        put8(&mut data, 3, 0x02);
        put8(&mut data, 4, 31);
        put(&mut data, 8, &padded(&p.vendor, 8));
        put(&mut data, 16, &padded(&p.product, 16));
        put(&mut data, 32, &padded(&p.revision, 4));
        data
    }

    /// One vital product data page, if the bridge has it.
    pub fn vpd_page(&self, page: u8) -> Option<Vec<u8>> {
        if !self.profile.vpd_pages.contains(&page) {
            return None;
        }
        let body = match page {
            0x00 => self.profile.vpd_pages.clone(),
            0x80 => self.serial().into_bytes(),
            0x83 => self.designators(),
            0x89 => self.ata_information()?,
            0xb0 => self.block_limits(),
            0xb1 => self.block_characteristics(),
            0xb2 => self.provisioning(),
            _ => return None,
        };
        let mut data = vec![0, page, 0, 0];
        put_be16(&mut data, 2, u16::try_from(body.len()).unwrap_or(u16::MAX));
        data.extend(body);
        Some(data)
    }

    pub(super) fn inquiry(&self, cdb: &[u8]) -> Answer {
        let evpd = byte(cdb, 1) & 0x01 != 0;
        let page = byte(cdb, 2);
        let allocation = usize::from(be16(cdb, 3).unwrap_or_default());
        let mut data = match (evpd, page) {
            (false, 0) => self.standard_inquiry(),
            (false, _) => return Answer::invalid_field(2),
            (true, page) => match self.vpd_page(page) {
                Some(data) => data,
                None => return Answer::invalid_field(2),
            },
        };
        data.truncate(allocation);
        Answer::good(data)
    }

    fn serial(&self) -> String {
        match &self.inner {
            Inner::Ata(drive) => drive.profile().serial.clone(),
            Inner::Flash(_) => self.usb_serial.clone(),
        }
    }

    /// A NAA 5 designator from the world wide name and one with vendor, model and serial.
    fn designators(&self) -> Vec<u8> {
        let Inner::Ata(drive) = &self.inner else {
            return Vec::new();
        };
        let mut out = vec![0x01, 0x03, 0x00, 0x08];
        out.extend(drive.wwn().to_be_bytes());
        let mut name = b"ATA     ".to_vec();
        name.extend(padded(&drive.profile().model, 40));
        name.extend(padded(&drive.profile().serial, 20));
        out.extend([0x02, 0x01, 0x00, name.len() as u8]);
        out.extend(name);
        out
    }

    /// ATA Information, 568 bytes after the header.
    fn ata_information(&self) -> Option<Vec<u8>> {
        if matches!(self.inner, Inner::Flash(_)) {
            return None;
        }
        // Offsets here count from byte 4 of the page.
        let mut body = vec![0; 568];
        put(&mut body, 4, &padded(&self.profile.vendor, 8));
        put(&mut body, 12, &padded(&self.profile.product, 16));
        put(&mut body, 28, &padded(&self.profile.revision, 4));
        // Signature: register FIS, device to host, status 50h, error 01h, LBA low 1, count 1.
        put(&mut body, 32, &[0x34, 0x00, 0x50, 0x01, 0x01]);
        put8(&mut body, 44, 0x01);
        put8(&mut body, 52, 0xec);
        put(&mut body, 56, &self.cache.identify);
        Some(body)
    }

    /// Block Limits, 60 bytes after the header.
    fn block_limits(&self) -> Vec<u8> {
        let mut body = vec![0; 60];
        let per_physical = self.per_physical();
        // WRITE SAME of zero blocks is not taken.
        put8(&mut body, 0, u8::from(self.profile.unmap));
        put_be16(&mut body, 2, u16::try_from(per_physical).unwrap_or(1));
        put_be32(
            &mut body,
            4,
            u32::try_from(self.max_transfer_blocks()).unwrap_or(u32::MAX),
        );
        if self.profile.unmap {
            let most = self.most_unmapped_blocks();
            put_be32(&mut body, 16, u32::try_from(most).unwrap_or(u32::MAX));
            // Each descriptor may need several ranges, so only few are offered.
            put_be32(&mut body, 20, self.profile.unmap_descriptors);
            put_be32(&mut body, 24, u32::try_from(per_physical).unwrap_or(1));
            put_be32(&mut body, 28, 0x8000_0000);
            put_be64(&mut body, 32, most);
        }
        body
    }

    /// Block Device Characteristics, 60 bytes after the header.
    fn block_characteristics(&self) -> Vec<u8> {
        let mut body = vec![0; 60];
        if let Inner::Ata(drive) = &self.inner {
            put_be16(&mut body, 0, drive.profile().rotation);
            put8(&mut body, 3, drive.profile().form_factor & 0x0f);
        }
        body
    }

    /// Logical Block Provisioning, 4 bytes after the header.
    fn provisioning(&self) -> Vec<u8> {
        let mut flags = 0;
        if self.profile.unmap {
            // LBPU, LBPWS.
            flags = 0xc0;
            if self.trimmed_reads_zero() {
                flags |= 0x04;
            }
        }
        vec![0, flags, u8::from(self.profile.unmap) * 2, 0]
    }

    /// READ FORMAT CAPACITIES: one descriptor, formatted media (MMC, "READ FORMAT CAPACITIES").
    pub(super) fn read_format_capacities(&self, cdb: &[u8]) -> Answer {
        let mut data = vec![0, 0, 0, 8];
        data.resize(12, 0);
        put_be32(&mut data, 4, u32::try_from(self.sectors()).unwrap_or(u32::MAX));
        put_be32(&mut data, 8, self.sector_bytes() as u32 & 0x00ff_ffff);
        put8(&mut data, 8, 0x02);
        data.truncate(usize::from(be16(cdb, 7).unwrap_or_default()));
        Answer::good(data)
    }

    /// READ CAPACITY(10), 8 bytes.
    pub(super) fn read_capacity_10(&self) -> Answer {
        let last = self.sectors().saturating_sub(1);
        let mut data = vec![0; 8];
        put_be32(&mut data, 0, u32::try_from(last).unwrap_or(u32::MAX));
        put_be32(&mut data, 4, self.sector_bytes() as u32);
        Answer::good(data)
    }

    /// READ CAPACITY(16), 32 bytes.
    pub(super) fn read_capacity_16(&self, cdb: &[u8]) -> Answer {
        let allocation = crate::wire::be32(cdb, 10).unwrap_or_default() as usize;
        let mut data = vec![0; 32];
        put_be64(&mut data, 0, self.sectors().saturating_sub(1));
        put_be32(&mut data, 8, self.sector_bytes() as u32);
        put8(&mut data, 13, self.per_physical().trailing_zeros() as u8);
        if self.profile.unmap {
            put8(&mut data, 14, 0x80 | u8::from(self.trimmed_reads_zero()) << 6);
        }
        data.truncate(allocation);
        Answer::good(data)
    }
}
