// Any raster of one band to a terrane file.

#include "trn_dataset.h"

#include <cmath>

static int SampleOf(GDALRasterBand *poBand)
{
    switch (poBand->GetRasterDataType())
    {
        case GDT_Byte:
        {
            const char *pszType = poBand->GetMetadataItem("PIXELTYPE", "IMAGE_STRUCTURE");
            return pszType && EQUAL(pszType, "SIGNEDBYTE") ? TRN_INT8 : TRN_UINT8;
        }
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 7, 0)
        case GDT_Int8:
            return TRN_INT8;
#endif
        case GDT_UInt16:
            return TRN_UINT16;
        case GDT_Int16:
            return TRN_INT16;
        case GDT_UInt32:
            return TRN_UINT32;
        case GDT_Int32:
            return TRN_INT32;
        case GDT_Float32:
            return TRN_FLOAT32;
        case GDT_Float64:
            return TRN_FLOAT64;
        default:
            return 0;
    }
}

// What the functions that libterrane calls need.
struct TRNSource
{
    GDALRasterBand *poBand = nullptr;
    GDALRasterBand *poMask = nullptr;  // Only where nodata does not say it all.
    bool bIsSignedByte = false;
    GDALProgressFunc pfnProgress = nullptr;
    void *pProgressData = nullptr;
    double dfDone = 0.0;

    int Progress() const { return pfnProgress(dfDone, "", pProgressData) ? TRN_OK : TRN_STOPPED; }

    static int32_t Read(void *pUser, uint32_t nColumn, uint32_t nRow, uint32_t nWidth, uint32_t nHeight, double *padfValues);
    static int32_t Told(void *pUser, double dfDone);
};

int32_t TRNSource::Read(void *pUser, uint32_t nColumn, uint32_t nRow, uint32_t nWidth, uint32_t nHeight, double *padfValues)
{
    auto poSource = static_cast<TRNSource *>(pUser);
    const int nX = static_cast<int>(nColumn), nY = static_cast<int>(nRow);
    const int nXSize = static_cast<int>(nWidth), nYSize = static_cast<int>(nHeight);
    const size_t nPixels = static_cast<size_t>(nWidth) * nHeight;
    // Cancelling does not wait for a row of trees.
    if (poSource->Progress() != TRN_OK)
        return TRN_STOPPED;
    if (poSource->poBand->RasterIO(GF_Read, nX, nY, nXSize, nYSize, padfValues, nXSize, nYSize, GDT_Float64, 0, 0, nullptr) != CE_None)
        return TRN_ERROR;
    if (poSource->bIsSignedByte)
    {
        for (size_t i = 0; i < nPixels; i++)
            padfValues[i] = padfValues[i] > 127 ? padfValues[i] - 256 : padfValues[i];
    }
    if (!poSource->poMask)
        return TRN_OK;
    GByte *pabyMask = static_cast<GByte *>(VSI_MALLOC2_VERBOSE(nWidth, nHeight));
    if (!pabyMask)
        return TRN_ERROR;
    const CPLErr eErr = poSource->poMask->RasterIO(GF_Read, nX, nY, nXSize, nYSize, pabyMask, nXSize, nYSize, GDT_Byte, 0, 0, nullptr);
    for (size_t i = 0; eErr == CE_None && i < nPixels; i++)
    {
        if (pabyMask[i] == 0)
            padfValues[i] = std::nan("");
    }
    VSIFree(pabyMask);
    return eErr == CE_None ? TRN_OK : TRN_ERROR;
}

int32_t TRNSource::Told(void *pUser, double dfDone)
{
    auto poSource = static_cast<TRNSource *>(pUser);
    poSource->dfDone = dfDone;
    return poSource->Progress();
}

// Says what of a source a terrane file cannot hold; false where the copy must be all of it.
static bool Lost(bool bStrict, const char *pszWhat)
{
    CPLError(bStrict ? CE_Failure : CE_Warning, CPLE_NotSupported, "A terrane file cannot hold %s", pszWhat);
    return !bStrict;
}

// What places a source on the ground other than a transform and a system.
static bool HasOnlyTransform(GDALDataset *poSrcDS, bool bIsPlaced, bool bStrict)
{
    const char *pszAdvice = bIsPlaced ? ": the transform alone is kept" : ": the file has no position; warp the source first, for example with gdalwarp";
    if (poSrcDS->GetGCPCount() > 0 && !Lost(bStrict, CPLSPrintf("the %d ground control points of the source%s", poSrcDS->GetGCPCount(), pszAdvice)))
        return false;
    static const char *const apszDomains[] = {"RPC", "GEOLOCATION"};
    for (const char *pszDomain : apszDomains)
    {
        if (poSrcDS->GetMetadata(pszDomain) && !Lost(bStrict, CPLSPrintf("the source's metadata %s%s", pszDomain, pszAdvice)))
            return false;
    }
    return true;
}

// A GeoTIFF of one pixel in the system of a dataset, as GDAL writes it; empty where it cannot be written so.
static std::vector<GByte> CrsGeoTiff(const OGRSpatialReference *poSRS, const void *pUnique)
{
    std::vector<GByte> abyGeoTiff;
    GDALDriver *poDriver = GetGDALDriverManager()->GetDriverByName("GTiff");
    if (!poDriver)
        return abyGeoTiff;
    // What the keys cannot say must not go beside the file.
    CPLConfigOptionSetter oNoPam("GDAL_PAM_ENABLED", "NO", false);
    const CPLString osName(CPLSPrintf("/vsimem/terrane_copy_%p.tif", pUnique));
    CPLStringList aosOptions;
    // The vertical part is written only so.
    aosOptions.SetNameValue("GEOTIFF_VERSION", "1.1");
    auto poCrsDS = std::unique_ptr<GDALDataset>(poDriver->Create(osName, 1, 1, 1, GDT_Byte, aosOptions.List()));
    if (poCrsDS)
    {
        poCrsDS->SetSpatialRef(poSRS);
        poCrsDS.reset();
        static const char *const apszDrivers[] = {"GTiff", nullptr};
        poCrsDS.reset(GDALDataset::Open(osName, GDAL_OF_RASTER | GDAL_OF_INTERNAL, apszDrivers, nullptr, nullptr));
        const bool bIsSaid = poCrsDS && poCrsDS->GetSpatialRef();
        poCrsDS.reset();
        vsi_l_offset nLength = 0;
        const GByte *pabyData = VSIGetMemFileBuffer(osName, &nLength, FALSE);
        if (pabyData && bIsSaid)
            abyGeoTiff.assign(pabyData, pabyData + nLength);
    }
    VSIUnlink(osName);
    return abyGeoTiff;
}

// What the options ask for; false where they contradict each other or are no numbers.
static bool ReadSettings(CSLConstList papszOptions, trn_encode_settings &sSettings)
{
    trn_encode_settings_init(&sSettings);
    // As every other driver: nothing is lost that was not said.
    sSettings.target = TRN_TARGET_LOSSLESS;
    static const struct
    {
        const char *pszName;
        int nTarget;
    } asTargets[] = {{"MAX_Z_ERROR", TRN_TARGET_MAX_ERROR}, {"RMSE", TRN_TARGET_RMSE}, {"BPP", TRN_TARGET_BPP}};
    int nGiven = 0;
    for (const auto &sTarget : asTargets)
    {
        const char *pszValue = CSLFetchNameValue(papszOptions, sTarget.pszName);
        if (!pszValue)
            continue;
        char *pszEnd = nullptr;
        sSettings.value = CPLStrtod(pszValue, &pszEnd);
        if (pszEnd == pszValue || *pszEnd)
        {
            CPLError(CE_Failure, CPLE_IllegalArg, "%s must be a number, not %s", sTarget.pszName, pszValue);
            return false;
        }
        sSettings.target = sTarget.nTarget;
        nGiven++;
    }
    const bool bIsLossless = CPLFetchBool(papszOptions, "LOSSLESS", nGiven == 0);
    if (nGiven + bIsLossless != 1)
    {
        CPLError(CE_Failure, CPLE_IllegalArg, "Give one of MAX_Z_ERROR, RMSE, BPP and LOSSLESS=YES");
        return false;
    }
    const char *pszTile = CSLFetchNameValue(papszOptions, "BLOCKSIZE");
    // What is no size is refused by the library with its limits.
    sSettings.tile = pszTile ? static_cast<uint32_t>(std::max(1, atoi(pszTile))) : 0;
    const char *pszEffort = CSLFetchNameValue(papszOptions, "EFFORT");
    if (pszEffort)
        sSettings.effort = static_cast<uint32_t>(std::max(0, atoi(pszEffort)));
    sSettings.threads = TRNThreads(papszOptions);
    return true;
}

// Where a file on this machine can be written for a name of VSI, and how it gets there.
class TRNTarget
{
  public:
    explicit TRNTarget(const char *pszFilename) : m_osName(pszFilename), m_osLocal(pszFilename)
    {
        if (STARTS_WITH(pszFilename, "/vsi"))
            m_osLocal = CPLGenerateTempFilename("terrane") + std::string(".trn");
    }
    ~TRNTarget()
    {
        if (IsTemporary())
            VSIUnlink(m_osLocal.c_str());
    }
    bool IsTemporary() const { return m_osLocal != m_osName; }
    const char *Local() const { return m_osLocal.c_str(); }
    bool Finish() const
    {
        return !IsTemporary() || CPLCopyFile(m_osName.c_str(), m_osLocal.c_str()) == 0;
    }

  private:
    std::string m_osName;
    std::string m_osLocal;
};

GDALDataset *TRNCreateCopy(const char *pszFilename, GDALDataset *poSrcDS, int bStrict, TRNOptions papszOptions,
                           GDALProgressFunc pfnProgress, void *pProgressData)
{
    if (poSrcDS->GetRasterCount() != 1)
    {
        CPLError(CE_Failure, CPLE_NotSupported, "A terrane file holds one band of heights, and the source has %d: choose one, for example with -b 1",
                 poSrcDS->GetRasterCount());
        return nullptr;
    }
    GDALRasterBand *poBand = poSrcDS->GetRasterBand(1);
    const int nSample = SampleOf(poBand);
    if (nSample == 0)
    {
        CPLError(CE_Failure, CPLE_NotSupported, "A terrane file holds heights of 8 to 32 bits or 64-bit floats, not %s: choose a type, for example with -ot Float64",
                 GDALGetDataTypeName(poBand->GetRasterDataType()));
        return nullptr;
    }
    trn_encode_settings sSettings;
    if (!ReadSettings(papszOptions, sSettings))
        return nullptr;
    const CPLString osProfile = CPLString(CSLFetchNameValueDef(papszOptions, "PROFILE", "standard")).tolower();
    sSettings.profile = osProfile.c_str();
    sSettings.overwrite = 1;

    TRNSource sSource;
    sSource.poBand = poBand;
    const int nMask = poBand->GetMaskFlags();
    sSource.poMask = (nMask & (GMF_ALL_VALID | GMF_NODATA)) ? nullptr : poBand->GetMaskBand();
    sSource.bIsSignedByte = nSample == TRN_INT8 && poBand->GetRasterDataType() == GDT_Byte;
    sSource.pfnProgress = pfnProgress ? pfnProgress : GDALDummyProgress;
    sSource.pProgressData = pProgressData;
    sSettings.progress = TRNSource::Told;
    sSettings.user = &sSource;

    trn_raster sRaster;
    trn_raster_init(&sRaster, static_cast<uint32_t>(poSrcDS->GetRasterXSize()), static_cast<uint32_t>(poSrcDS->GetRasterYSize()));
    sRaster.read = TRNSource::Read;
    sRaster.user = &sSource;
    sRaster.sample = nSample;
    int nBlockXSize = 0, nBlockYSize = 0;
    poBand->GetBlockSize(&nBlockXSize, &nBlockYSize);
    sRaster.block_width = static_cast<uint32_t>(nBlockXSize);
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 12, 0)
    GDALGeoTransform oTransform;
    sRaster.is_georeferenced = poSrcDS->GetGeoTransform(oTransform) == CE_None;
    for (int i = 0; sRaster.is_georeferenced && i < 6; i++)
        sRaster.affine[i] = oTransform[i];
#else
    double adfTransform[6];
    sRaster.is_georeferenced = poSrcDS->GetGeoTransform(adfTransform) == CE_None;
    if (sRaster.is_georeferenced)
        memcpy(sRaster.affine, adfTransform, sizeof(adfTransform));
#endif
    if (!HasOnlyTransform(poSrcDS, sRaster.is_georeferenced, bStrict))
        return nullptr;
    const char *pszPoint = poSrcDS->GetMetadataItem(GDALMD_AREA_OR_POINT);
    sRaster.pixel_is_point = pszPoint && EQUAL(pszPoint, GDALMD_AOP_POINT);
    const OGRSpatialReference *poSRS = poSrcDS->GetSpatialRef();
    std::vector<GByte> abyGeoTiff;
    if (poSRS)
        abyGeoTiff = CrsGeoTiff(poSRS, poSrcDS);
    if (poSRS && abyGeoTiff.empty() && !Lost(bStrict, "the source's reference system, which no GeoTIFF keys state"))
        return nullptr;
    if (!abyGeoTiff.empty())
    {
        sRaster.geotiff = abyGeoTiff.data();
        sRaster.geotiff_length = abyGeoTiff.size();
    }
    sRaster.nodata = poBand->GetNoDataValue(&sRaster.has_nodata);
    sRaster.scale = poBand->GetScale();
    sRaster.offset = poBand->GetOffset();
    const std::string osUnit = poBand->GetUnitType(), osDescription = poBand->GetDescription();
    sRaster.unit = osUnit.c_str();
    sRaster.description = osDescription.c_str();

    if (sSource.Progress() != TRN_OK)
    {
        CPLError(CE_Failure, CPLE_UserInterrupt, "User terminated CreateCopy()");
        return nullptr;
    }
    const TRNTarget oTarget(pszFilename);
    trn_encoded sEncoded{};
    TRNError oError;
    const int nStatus = trn_encode(&sRaster, oTarget.Local(), &sSettings, &sEncoded, oError.Out());
    if (nStatus != TRN_OK)
    {
        if (nStatus == TRN_STOPPED)
            CPLError(CE_Failure, CPLE_UserInterrupt, "User terminated CreateCopy()");
        else
            CPLError(CE_Failure, CPLE_AppDefined, "%s: %s", pszFilename, oError.Text());
        return nullptr;
    }
    if (sEncoded.not_heights)
    {
        CPLError(CE_Warning, CPLE_AppDefined,
                 CPL_FRMT_GUIB " pixels are infinite or of 1e30 and beyond without being nodata: they have no data in the file",
                 static_cast<GUIntBig>(sEncoded.not_heights));
    }
    if (sEncoded.reached == TRN_REACHED_LOSSLESS)
        CPLError(CE_Warning, CPLE_AppDefined, "The file is lossless, which takes no more bytes than what was asked for");
    else if (sEncoded.reached == TRN_REACHED_SMALLEST)
        CPLError(CE_Warning, CPLE_AppDefined,
                 "The error is smaller than what was asked for: no file of this raster is smaller");
    if (!oTarget.Finish())
    {
        CPLError(CE_Failure, CPLE_FileIO, "%s cannot be written", pszFilename);
        return nullptr;
    }
    GDALOpenInfo oOpenInfo(pszFilename, GA_ReadOnly);
    return TRNDataset::Open(&oOpenInfo);
}
