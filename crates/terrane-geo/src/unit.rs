//! The unit in which a file stores its heights.

/// A unit of height; heights are converted to metres when they are read and back when they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HeightUnit {
    /// Metres, or no statement at all.
    #[default]
    Metre,
    /// Centimetres.
    Centimetre,
    /// International feet of 0.3048 m.
    Foot,
    /// United States survey feet of 1200/3937 m.
    UsSurveyFoot,
    /// British feet of 1936.
    BritishFoot1936,
}

impl HeightUnit {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Metre,
        Self::Centimetre,
        Self::Foot,
        Self::UsSurveyFoot,
        Self::BritishFoot1936,
    ];

    /// Metres in one unit.
    pub fn metres(self) -> f64 {
        match self {
            Self::Metre => 1.0,
            Self::Centimetre => 0.01,
            Self::Foot => 0.3048,
            Self::UsSurveyFoot => 1200.0 / 3937.0,
            Self::BritishFoot1936 => 0.304_800_749_1,
        }
    }

    /// The name under which GDAL stores the unit.
    pub fn name(self) -> &'static str {
        match self {
            Self::Metre => "m",
            Self::Centimetre => "cm",
            Self::Foot => "ft",
            Self::UsSurveyFoot => "US survey foot",
            Self::BritishFoot1936 => "British foot (1936)",
        }
    }

    /// The unit that a name in a file stands for.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "" | "m" | "metre" | "metres" | "meter" | "meters" => Some(Self::Metre),
            "cm" | "centimetre" | "centimetres" | "centimeter" | "centimeters" => {
                Some(Self::Centimetre)
            }
            "ft" | "foot" | "feet" | "international foot" => Some(Self::Foot),
            "us survey foot" | "us survey feet" | "ftus" | "us-ft" | "us_ft" | "foot_us" => {
                Some(Self::UsSurveyFoot)
            }
            "british foot (1936)" => Some(Self::BritishFoot1936),
            _ => None,
        }
    }

    /// The unit that an EPSG unit code (GeoKey 4099) stands for.
    pub fn from_epsg_unit(code: u16) -> Option<Self> {
        match code {
            9001 => Some(Self::Metre),
            1033 => Some(Self::Centimetre),
            9002 => Some(Self::Foot),
            9003 => Some(Self::UsSurveyFoot),
            9095 => Some(Self::BritishFoot1936),
            _ => None,
        }
    }

    /// The unit of a vertical EPSG system; all but these few are in metres.
    pub fn from_vertical_epsg(code: u16) -> Self {
        match code {
            5614 | 6130..=6132 | 8050 | 8051 | 8228 | 8897 => Self::Foot,
            5702 | 6358..=6360 | 8052 | 8053 => Self::UsSurveyFoot,
            5754 => Self::BritishFoot1936,
            _ => Self::Metre,
        }
    }
}

/// Where the unit of heights is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitOrigin {
    /// The band states it.
    Band,
    /// The vertical coordinate reference system states it.
    VerticalSystem,
    /// Nothing states it: they are taken for metres.
    Assumed,
}

impl UnitOrigin {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Band => "band",
            Self::VerticalSystem => "vertical system",
            Self::Assumed => "assumed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_found_again_by_its_name() {
        for unit in HeightUnit::ALL {
            assert_eq!(HeightUnit::from_name(unit.name()), Some(unit));
        }
        assert_eq!(HeightUnit::from_name("fathom"), None);
    }
}
