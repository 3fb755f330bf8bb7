//! What a tile can show.

use terrane_geo::Product;

/// One kind of tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    /// Heights as Terrarium colours.
    Height,
    /// Heights tinted and shaded, to look at.
    Relief,
    /// A derivative of the surface in colours.
    Product(Product),
    /// The surface minus the raster it was made from, in colours.
    Difference,
    /// What is proven to have changed since an earlier file, in colours.
    Change,
}

impl Layer {
    /// Every layer. Ruggedness and the like exist between pixels alone, not on a surface.
    pub const ALL: [Self; 10] = [
        Self::Height,
        Self::Relief,
        Self::Product(Product::Hillshade),
        Self::Product(Product::Slope),
        Self::Product(Product::Aspect),
        Self::Product(Product::Laplacian),
        Self::Product(Product::ProfileCurvature),
        Self::Product(Product::PlanCurvature),
        Self::Difference,
        Self::Change,
    ];

    /// The name in addresses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Height => "height",
            Self::Relief => "relief",
            Self::Product(product) => product.name(),
            Self::Difference => "difference",
            Self::Change => "change",
        }
    }

    /// The layer of a name; titiler calls heights in Terrarium colours `terrarium`.
    pub fn parse(name: &str) -> Option<Self> {
        if name == "terrarium" {
            return Some(Self::Height);
        }
        Self::ALL.into_iter().find(|layer| layer.name() == name)
    }

    /// Whether it shows a file by itself, with nothing to compare it with.
    pub fn is_of_file(self) -> bool {
        !matches!(self, Self::Difference | Self::Change)
    }

    /// The unit of what it shows.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Height | Self::Relief | Self::Difference | Self::Change => "m",
            Self::Product(product) => product.unit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for layer in Layer::ALL {
            assert_eq!(Layer::parse(layer.name()), Some(layer));
        }
        assert_eq!(Layer::parse("tri"), None);
    }
}
