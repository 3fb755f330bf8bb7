// The driver as GDAL finds it: GDALRegister_TRN is the one symbol of this plugin.

#include "trn_dataset.h"

extern "C" CPL_DLL void GDALRegister_TRN();

void GDALRegister_TRN()
{
    if (!GDAL_CHECK_VERSION("TRN driver") || GDALGetDriverByName("TRN"))
        return;
    if (trn_abi() != TRN_ABI)
    {
        CPLError(CE_Failure, CPLE_AppDefined, "The TRN driver was built for another libterrane");
        return;
    }
    auto poDriver = new GDALDriver();
    poDriver->SetDescription("TRN");
    poDriver->SetMetadataItem(GDAL_DMD_LONGNAME, "terrane elevation raster (.trn)");
    poDriver->SetMetadataItem(GDAL_DMD_EXTENSION, "trn");
    poDriver->SetMetadataItem(GDAL_DMD_EXTENSIONS, "trn");
    poDriver->SetMetadataItem(GDAL_DMD_HELPTOPIC, "docs/gdal.md");
    poDriver->SetMetadataItem("TERRANE_VERSION", trn_version());
    poDriver->SetMetadataItem(GDAL_DCAP_RASTER, "YES");
    poDriver->SetMetadataItem(GDAL_DCAP_VIRTUALIO, "YES");
    poDriver->SetMetadataItem(GDAL_DMD_CREATIONDATATYPES, "Byte Int8 UInt16 Int16 UInt32 Int32 Float32 Float64");
    poDriver->SetMetadataItem(
        GDAL_DMD_OPENOPTIONLIST,
        "<OpenOptionList>"
        "<Option name='NUM_THREADS' type='string' description='Threads that decode a large window: a number or ALL_CPUS (default)'/>"
        "</OpenOptionList>");
    poDriver->SetMetadataItem(
        GDAL_DMD_CREATIONOPTIONLIST,
        "<CreationOptionList>"
        "<Option name='LOSSLESS' type='boolean' description='Every number as it is: YES unless one of the next three is given' default='YES'/>"
        "<Option name='MAX_Z_ERROR' type='float' min='0' description='No pixel farther off than so many metres; 0.1 makes small files of heights'/>"
        "<Option name='RMSE' type='float' description='Root mean square error in metres, instead of MAX_Z_ERROR'/>"
        "<Option name='BPP' type='float' description='Bits per pixel with data, instead of MAX_Z_ERROR'/>"
        "<Option name='PROFILE' type='string-select' description='Speed against size' default='standard'>"
        "<Value>fast</Value><Value>standard</Value><Value>best</Value></Option>"
        "<Option name='EFFORT' type='int' min='0' max='3' description='How hard the encoder tries' default='1'/>"
        "<Option name='BLOCKSIZE' type='int' min='16' max='4096' description='Side of a tile in pixels, even' default='256'/>"
        "<Option name='NUM_THREADS' type='string' description='Threads that encode: a number or ALL_CPUS (default)'/>"
        "</CreationOptionList>");
    poDriver->pfnIdentify = TRNDataset::Identify;
    poDriver->pfnOpen = TRNDataset::Open;
    poDriver->pfnCreateCopy = TRNCreateCopy;
    GetGDALDriverManager()->RegisterDriver(poDriver);
}
