//! LOG SENSE pages: the list of pages (00h) and Temperature (0Dh).

use serde::Serialize;

use crate::units::Celsius;
use crate::wire::{WireError, be16};

const STRUCTURE: &str = "log page";

/// One log parameter, as it stands in any log page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter<'a> {
    /// PARAMETER CODE.
    pub code: u16,
    /// Parameter control byte.
    pub control: u8,
    /// The value, cut to what arrived.
    pub value: &'a [u8],
}

/// A log page of any kind: 4 header bytes and parameters (SPC-4, "Log page structure and log parameter structure").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage<'a> {
    /// PAGE CODE, 6 bits.
    pub page: u8,
    /// SUBPAGE CODE, 0 unless SPF is set.
    pub subpage: u8,
    /// Fewer bytes arrived than the page announces.
    pub truncated: bool,
    body: &'a [u8],
}

impl<'a> LogPage<'a> {
    /// Reads the header and clamps the body to what arrived.
    ///
    /// # Errors
    /// Fewer than 4 bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (Some(&code), Some(&subpage), Some(claimed)) = (bytes.first(), bytes.get(1), be16(bytes, 2))
        else {
            return Err(WireError::truncated(STRUCTURE, bytes.len(), 4));
        };
        let end = 4 + usize::from(claimed);
        Ok(Self {
            page: code & 0x3f,
            subpage: if code & 0x40 != 0 { subpage } else { 0 },
            truncated: bytes.len() < end,
            body: bytes.get(4..end.min(bytes.len())).unwrap_or_default(),
        })
    }

    /// The parameters in their order; one that is cut in its header is left out.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter<'a>> {
        let mut rest = self.body;
        std::iter::from_fn(move || {
            let code = be16(rest, 0)?;
            let control = *rest.get(2)?;
            let end = 4 + usize::from(*rest.get(3)?);
            let value = rest.get(4..end.min(rest.len())).unwrap_or_default();
            rest = rest.get(end..).unwrap_or_default();
            Some(Parameter { code, control, value })
        })
    }
}

/// Temperature log page, 0Dh (SPC-4, "Temperature log page").
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TemperatureLog {
    /// Parameter 0000h, in °C; the page cannot say anything below 0, and FFh is "not known".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temp_celsius: Option<Celsius>,
    /// Parameter 0001h: the highest temperature at which the device may run for long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference_celsius: Option<Celsius>,
    /// Fewer bytes arrived than the page announces.
    pub truncated: bool,
}

impl TemperatureLog {
    /// Reads log page 0Dh.
    ///
    /// # Errors
    /// Fewer than 4 bytes, or another page: some bridges answer every LOG SENSE with the same data.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let page = LogPage::parse(bytes)?;
        expect(&page, 0x0d, "Temperature (0Dh)")?;
        let value = |code: u16| {
            page.parameters()
                .find(|p| p.code == code)
                .and_then(|p| p.value.get(1).copied())
                .filter(|t| *t != 0xff)
                .map(|t| Celsius(i16::from(t)))
        };
        Ok(Self {
            temp_celsius: value(0),
            reference_celsius: value(1),
            truncated: page.truncated,
        })
    }
}

/// Supported Log Pages, 00h, with subpages where subpage FFh was asked for (SPC-4, "Supported Log Pages log page").
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SupportedLogPages {
    /// (page, subpage) pairs.
    pub pages: Vec<(u8, u8)>,
    /// Fewer bytes arrived than the page announces.
    pub truncated: bool,
}

impl SupportedLogPages {
    /// Reads log page 00h.
    ///
    /// # Errors
    /// Fewer than 4 bytes, or another page.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let page = LogPage::parse(bytes)?;
        expect(&page, 0x00, "Supported Log Pages (00h)")?;
        let pages = if page.subpage == 0xff {
            page.body
                .chunks_exact(2)
                .filter_map(|pair| Some((pair.first()? & 0x3f, *pair.get(1)?)))
                .collect()
        } else {
            page.body.iter().map(|code| (code & 0x3f, 0)).collect()
        };
        Ok(Self {
            pages,
            truncated: page.truncated,
        })
    }

    /// Whether a page (without subpage) is in the list.
    pub fn has(&self, page: u8) -> bool {
        self.pages.contains(&(page, 0))
    }
}

fn expect(page: &LogPage<'_>, wanted: u8, name: &str) -> Result<(), WireError> {
    if page.page == wanted {
        return Ok(());
    }
    Err(WireError {
        structure: STRUCTURE,
        offset_bytes: 0,
        why: format!("page {:02x}h where {name} is wanted", page.page),
    })
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn temperatures_are_found_by_code_and_ff_is_unknown() {
        let page = [0x0d, 0, 0, 12, 0, 0, 3, 2, 0, 41, 0, 1, 3, 2, 0, 0xff];
        let log = TemperatureLog::parse(&page).unwrap();
        assert_eq!(log.temp_celsius, Some(Celsius(41)));
        assert_eq!(log.reference_celsius, None);
        assert!(!log.truncated);
        let cut = TemperatureLog::parse(&page[..12]).unwrap();
        assert_eq!((cut.temp_celsius, cut.truncated), (Some(Celsius(41)), true));
        assert!(TemperatureLog::parse(&[0; 16]).is_err());
    }

    #[test]
    fn the_list_may_have_subpages() {
        let plain = SupportedLogPages::parse(&[0, 0, 0, 3, 0, 0x0d, 0x2f]).unwrap();
        assert!(plain.has(0x0d) && !plain.has(0x10));
        let sub = SupportedLogPages::parse(&[0x40, 0xff, 0, 4, 0x0d, 0, 0x0d, 1]).unwrap();
        assert_eq!(sub.pages, [(0x0d, 0), (0x0d, 1)]);
    }
}
