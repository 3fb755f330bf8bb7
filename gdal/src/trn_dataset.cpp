#include "trn_dataset.h"

#include <cmath>
#include <cstring>

// Tiles that GDAL's cache of blocks serves better: fewer, or of which less than half is wanted.
constexpr GIntBig MAX_CACHED_TILES = 4;

static GDALDataType TypeOf(int nSample)
{
    switch (nSample)
    {
        case TRN_UINT8:
            return GDT_Byte;
        case TRN_INT8:
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 7, 0)
            return GDT_Int8;
#else
            return GDT_Byte;  // With PIXELTYPE=SIGNEDBYTE, as GDAL did then.
#endif
        case TRN_UINT16:
            return GDT_UInt16;
        case TRN_INT16:
            return GDT_Int16;
        case TRN_UINT32:
            return GDT_UInt32;
        case TRN_INT32:
            return GDT_Int32;
        case TRN_FLOAT64:
            return GDT_Float64;
        default:
            return GDT_Float32;
    }
}

unsigned TRNThreads(CSLConstList papszOptions)
{
    const char *pszThreads = CSLFetchNameValueDef(papszOptions, "NUM_THREADS", CPLGetConfigOption("GDAL_NUM_THREADS", "ALL_CPUS"));
    return EQUAL(pszThreads, "ALL_CPUS") ? 0 : static_cast<unsigned>(std::max(1, atoi(pszThreads)));
}

// ---- TRNFile ----

TRNFile::~TRNFile()
{
    trn_close(m_hFile);
    if (m_fp)
        VSIFCloseL(m_fp);
}

int64_t TRNFile::Read(void *pUser, uint64_t nOffset, void *pBuffer, size_t nLength)
{
    auto poFile = static_cast<TRNFile *>(pUser);
    // A handle has one position.
    std::lock_guard<std::mutex> oLock(poFile->m_oMutex);
    if (VSIFSeekL(poFile->m_fp, nOffset, SEEK_SET) != 0)
        return -1;
    return static_cast<int64_t>(VSIFReadL(pBuffer, 1, nLength, poFile->m_fp));
}

// Parts that /vsicurl and its like ask for side by side.
int32_t TRNFile::ReadAll(void *pUser, size_t nCount, const uint64_t *panOffsets, const size_t *panLengths, void **ppBuffers)
{
    // Of one part VSI may have the beginning already.
    if (nCount == 1)
        return Read(pUser, panOffsets[0], ppBuffers[0], panLengths[0]) == static_cast<int64_t>(panLengths[0]) ? TRN_OK : TRN_ERROR;
    auto poFile = static_cast<TRNFile *>(pUser);
    const std::vector<vsi_l_offset> anOffsets(panOffsets, panOffsets + nCount);
    std::lock_guard<std::mutex> oLock(poFile->m_oMutex);
    const int nStatus = VSIFReadMultiRangeL(static_cast<int>(nCount), ppBuffers, anOffsets.data(), panLengths, poFile->m_fp);
    return nStatus == 0 ? TRN_OK : TRN_ERROR;
}

std::shared_ptr<TRNFile> TRNFile::Open(VSILFILE *fp, const char *pszName, unsigned nThreads)
{
    auto poFile = std::make_shared<TRNFile>();
    poFile->m_fp = fp;
    if (VSIFSeekL(fp, 0, SEEK_END) != 0)
    {
        CPLError(CE_Failure, CPLE_FileIO, "%s: its length cannot be found", pszName);
        return nullptr;
    }
    // GDAL keeps blocks itself.
    trn_open_settings sSettings{};
    sSettings.threads = nThreads;
    sSettings.is_cached_elsewhere = 1;
    // What is no file of this machine may be far away.
    if (STARTS_WITH(pszName, "/vsi"))
        sSettings.read_all = ReadAll;
    TRNError oError;
    poFile->m_hFile = trn_open_with(Read, poFile.get(), VSIFTellL(fp), &sSettings, oError.Out());
    if (!poFile->m_hFile || trn_describe(poFile->m_hFile, &poFile->m_sInfo, oError.Out()) != TRN_OK)
    {
        CPLError(CE_Failure, CPLE_OpenFailed, "%s: %s", pszName, oError.Text());
        return nullptr;
    }
    return poFile;
}

// ---- TRNDataset ----

TRNDataset::~TRNDataset()
{
    FlushCache(true);
}

int TRNDataset::Identify(GDALOpenInfo *poOpenInfo)
{
    static const char achMagic[] = "\x89TRN\r\n\x1a\n";
    return poOpenInfo->nHeaderBytes >= 8 && memcmp(poOpenInfo->pabyHeader, achMagic, 8) == 0;
}

GDALDataset *TRNDataset::Open(GDALOpenInfo *poOpenInfo)
{
    if (!Identify(poOpenInfo) || !poOpenInfo->fpL)
        return nullptr;
    if (poOpenInfo->eAccess == GA_Update)
    {
        CPLError(CE_Failure, CPLE_NotSupported, "%s: a terrane file cannot be changed in place; open it for reading",
                 poOpenInfo->pszFilename);
        return nullptr;
    }
    VSILFILE *fp = poOpenInfo->fpL;
    poOpenInfo->fpL = nullptr;
    auto poFile = TRNFile::Open(fp, poOpenInfo->pszFilename, TRNThreads(poOpenInfo->papszOpenOptions));
    if (!poFile)
        return nullptr;
    const trn_info &sInfo = poFile->Info();
    if (sInfo.width > INT_MAX || sInfo.height > INT_MAX || !GDALCheckDatasetDimensions(static_cast<int>(sInfo.width), static_cast<int>(sInfo.height)))
    {
        CPLError(CE_Failure, CPLE_NotSupported, "%s: %u by %u pixels are more than GDAL can address", poOpenInfo->pszFilename,
                 sInfo.width, sInfo.height);
        return nullptr;
    }

    auto poDS = std::make_unique<TRNDataset>();
    poDS->m_poFile = poFile;
    poDS->nRasterXSize = static_cast<int>(sInfo.width);
    poDS->nRasterYSize = static_cast<int>(sInfo.height);
    std::unique_ptr<TRNBand> poFull;
    for (unsigned nLevel = 0; nLevel < sInfo.levels; nLevel++)
    {
        trn_level sLevel{};
        TRNError oError;
        if (trn_describe_level(poFile->Handle(), nLevel, &sLevel, oError.Out()) != TRN_OK)
        {
            CPLError(CE_Failure, CPLE_AppDefined, "%s: %s", poOpenInfo->pszFilename, oError.Text());
            return nullptr;
        }
        auto poBand = std::make_unique<TRNBand>(poDS.get(), nLevel, sLevel);
        if (nLevel == 0)
            poFull = std::move(poBand);
        else
            poFull->AddOverview(std::move(poBand));
    }
    poDS->SetBand(1, poFull.release());
    poDS->ReadSpatialRef();
    poDS->Describe();
    poDS->SetDescription(poOpenInfo->pszFilename);
    poDS->TryLoadXML(poOpenInfo->GetSiblingFiles());
    return poDS.release();
}

// GDAL itself reads the GeoTIFF keys, so that a system is what it would be in the decoded raster.
void TRNDataset::ReadSpatialRef()
{
    const trn_info &sInfo = File().Info();
    if (!sInfo.geotiff)
        return;
    const CPLString osName(CPLSPrintf("/vsimem/terrane_crs_%p.tif", this));
    VSILFILE *fp = VSIFileFromMemBuffer(osName, const_cast<GByte *>(sInfo.geotiff), sInfo.geotiff_length, FALSE);
    if (!fp)
        return;
    VSIFCloseL(fp);
    {
        // Keys of GeoTIFF 1.0 may have a vertical part too.
        CPLConfigOptionSetter oCompound("GTIFF_REPORT_COMPD_CS", "YES", false);
        CPLPushErrorHandler(CPLQuietErrorHandler);
        static const char *const apszDrivers[] = {"GTiff", nullptr};
        auto poCrsDS = std::unique_ptr<GDALDataset>(
            GDALDataset::Open(osName, GDAL_OF_RASTER | GDAL_OF_INTERNAL, apszDrivers, nullptr, nullptr));
        if (poCrsDS && poCrsDS->GetSpatialRef())
            m_oSRS = *poCrsDS->GetSpatialRef();
        poCrsDS.reset();
        CPLPopErrorHandler();
        CPLErrorReset();
    }
    VSIUnlink(osName);
    if (m_oSRS.IsEmpty() && sInfo.horizontal_epsg)
    {
        m_oSRS.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
        m_oSRS.importFromEPSG(static_cast<int>(sInfo.horizontal_epsg));
    }
}

void TRNDataset::Describe()
{
    const trn_info &sInfo = File().Info();
    // The qualified functions do not mark the sidecar as changed.
    const auto Set = [this](const char *pszName, const char *pszValue, const char *pszDomain)
    { GDALDataset::SetMetadataItem(pszName, pszValue, pszDomain); };
    const auto Number = [](double dfValue) { return std::string(CPLSPrintf("%.17g", dfValue)); };

    Set(GDALMD_AREA_OR_POINT, sInfo.pixel_is_point ? GDALMD_AOP_POINT : GDALMD_AOP_AREA, "");
    Set("COMPRESSION", "TERRANE", "IMAGE_STRUCTURE");
    if (sInfo.bound == TRN_BOUND_LOSSLESS)
        Set("COMPRESSION_REVERSIBILITY", "LOSSLESS", "IMAGE_STRUCTURE");
    else
        Set("COMPRESSION_REVERSIBILITY", "LOSSY", "IMAGE_STRUCTURE");
    if (sInfo.bound == TRN_BOUND_MAX_ERROR)
        Set("MAX_Z_ERROR", CPLSPrintf("%.15g", sInfo.bound_m), "IMAGE_STRUCTURE");

    Set("METHOD", sInfo.method, "TERRANE");
    if (sInfo.model[0])
        Set("MODEL", sInfo.model, "TERRANE");
    if (sInfo.bound != TRN_BOUND_NONE)
        Set("BOUND_M", Number(sInfo.bound_m).c_str(), "TERRANE");
    Set("MAX_ERROR_M", Number(sInfo.max_error_m).c_str(), "TERRANE");
    Set("RMSE_M", Number(sInfo.rmse_m).c_str(), "TERRANE");
    Set("PIXELS", CPLSPrintf(CPL_FRMT_GUIB, static_cast<GUIntBig>(sInfo.pixels)), "TERRANE");
    if (sInfo.pixels)
    {
        Set("LOWEST_M", Number(sInfo.lowest_m).c_str(), "TERRANE");
        Set("HIGHEST_M", Number(sInfo.highest_m).c_str(), "TERRANE");
    }
    if (sInfo.source_has_nodata)
        Set("SOURCE_NODATA", Number(sInfo.source_nodata).c_str(), "TERRANE");

    const char *apszJson[] = {sInfo.json, nullptr};
    GDALDataset::SetMetadata(const_cast<char **>(apszJson), "json:TERRANE");
}

const OGRSpatialReference *TRNDataset::GetSpatialRef() const
{
    return m_oSRS.IsEmpty() ? GDALPamDataset::GetSpatialRef() : &m_oSRS;
}

#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 12, 0)
CPLErr TRNDataset::GetGeoTransform(GDALGeoTransform &oTransform) const
{
    if (!File().Info().is_georeferenced)
        return GDALPamDataset::GetGeoTransform(oTransform);
    oTransform = GDALGeoTransform(File().Info().affine);
    return CE_None;
}
#else
CPLErr TRNDataset::GetGeoTransform(double *padfTransform)
{
    if (!File().Info().is_georeferenced)
        return GDALPamDataset::GetGeoTransform(padfTransform);
    memcpy(padfTransform, File().Info().affine, 6 * sizeof(double));
    return CE_None;
}
#endif

// ---- TRNBand ----

TRNBand::TRNBand(TRNDataset *poDSIn, unsigned nLevel, const trn_level &sLevel) : m_nLevel(nLevel)
{
    poDS = poDSIn;
    nBand = nLevel == 0 ? 1 : 0;
    const trn_info &sInfo = poDSIn->File().Info();
    nRasterXSize = static_cast<int>(sLevel.width);
    nRasterYSize = static_cast<int>(sLevel.height);
    nBlockXSize = nBlockYSize = static_cast<int>(sInfo.tile);
    eDataType = TypeOf(sInfo.sample);
#if GDAL_VERSION_NUM < GDAL_COMPUTE_VERSION(3, 7, 0)
    if (sInfo.sample == TRN_INT8)
        GDALRasterBand::SetMetadataItem("PIXELTYPE", "SIGNEDBYTE", "IMAGE_STRUCTURE");
#endif
    if (nLevel == 0)
        GDALRasterBand::SetDescription(sInfo.description);
}

CPLErr TRNBand::ReadPart(const trn_part &sPart, void *pData, size_t nLine)
{
    TRNError oError;
    if (trn_read_stored(File().Handle(), &sPart, pData, nLine, oError.Out()) == TRN_OK)
        return CE_None;
    CPLError(CE_Failure, CPLE_FileIO, "%s: %s", poDS->GetDescription(), oError.Text());
    return CE_Failure;
}

CPLErr TRNBand::IReadBlock(int nBlockXOff, int nBlockYOff, void *pData)
{
    trn_part sPart{};
    sPart.level = m_nLevel;
    sPart.column = static_cast<uint32_t>(nBlockXOff) * static_cast<uint32_t>(nBlockXSize);
    sPart.row = static_cast<uint32_t>(nBlockYOff) * static_cast<uint32_t>(nBlockYSize);
    sPart.width = std::min<uint32_t>(nBlockXSize, nRasterXSize - sPart.column);
    sPart.height = std::min<uint32_t>(nBlockYSize, nRasterYSize - sPart.row);
    return ReadPart(sPart, pData, nBlockXSize);
}

// Large windows at their own resolution are decoded by all threads; everything else goes through GDAL's blocks.
CPLErr TRNBand::IRasterIO(GDALRWFlag eRWFlag, int nXOff, int nYOff, int nXSize, int nYSize, void *pData, int nBufXSize,
                          int nBufYSize, GDALDataType eBufType, GSpacing nPixelSpace, GSpacing nLineSpace,
                          GDALRasterIOExtraArg *psExtraArg)
{
    const auto Tiles = [this](int nOff, int nSize)
    { return static_cast<GIntBig>((nOff + nSize - 1) / nBlockXSize - nOff / nBlockXSize + 1); };
    const GIntBig nTiles = Tiles(nXOff, nXSize) * Tiles(nYOff, nYSize);
    const int nBytes = GDALGetDataTypeSizeBytes(eDataType);
    const bool bIsLarge = nTiles > MAX_CACHED_TILES &&
                          static_cast<GIntBig>(nXSize) * nYSize * 2 >= nTiles * nBlockXSize * nBlockYSize;
    if (eRWFlag != GF_Read || !bIsLarge || nBufXSize != nXSize || nBufYSize != nYSize || eBufType != eDataType ||
        nPixelSpace != nBytes || nLineSpace < nPixelSpace * nXSize || nLineSpace % nBytes != 0)
    {
        return GDALPamRasterBand::IRasterIO(eRWFlag, nXOff, nYOff, nXSize, nYSize, pData, nBufXSize, nBufYSize, eBufType,
                                            nPixelSpace, nLineSpace, psExtraArg);
    }
    trn_part sPart{};
    sPart.level = m_nLevel;
    sPart.column = static_cast<uint32_t>(nXOff);
    sPart.row = static_cast<uint32_t>(nYOff);
    sPart.width = static_cast<uint32_t>(nXSize);
    sPart.height = static_cast<uint32_t>(nYSize);
    const CPLErr eErr = ReadPart(sPart, pData, static_cast<size_t>(nLineSpace / nBytes));
    if (eErr == CE_None && psExtraArg->pfnProgress)
        psExtraArg->pfnProgress(1.0, "", psExtraArg->pProgressData);
    return eErr;
}

double TRNBand::GetNoDataValue(int *pbSuccess)
{
    if (!File().Info().has_nodata)
        return GDALPamRasterBand::GetNoDataValue(pbSuccess);
    if (pbSuccess)
        *pbSuccess = TRUE;
    return File().Info().nodata;
}

double TRNBand::Extreme(double dfHeight, int *pbSuccess) const
{
    const trn_info &sInfo = File().Info();
    if (pbSuccess)
        *pbSuccess = TRUE;
    const double dfNumber = (dfHeight / sInfo.metres_per_unit - sInfo.offset) / sInfo.scale;
    if (eDataType == GDT_Float64)
        return dfNumber;
    return eDataType == GDT_Float32 ? static_cast<double>(static_cast<float>(dfNumber)) : std::round(dfNumber);
}

double TRNBand::GetMinimum(int *pbSuccess)
{
    const trn_info &sInfo = File().Info();
    if (m_nLevel > 0 || !sInfo.pixels)
        return GDALPamRasterBand::GetMinimum(pbSuccess);
    return Extreme(sInfo.scale > 0 ? sInfo.lowest_m : sInfo.highest_m, pbSuccess);
}

double TRNBand::GetMaximum(int *pbSuccess)
{
    const trn_info &sInfo = File().Info();
    if (m_nLevel > 0 || !sInfo.pixels)
        return GDALPamRasterBand::GetMaximum(pbSuccess);
    return Extreme(sInfo.scale > 0 ? sInfo.highest_m : sInfo.lowest_m, pbSuccess);
}

double TRNBand::GetScale(int *pbSuccess)
{
    if (pbSuccess)
        *pbSuccess = TRUE;
    return File().Info().scale;
}

double TRNBand::GetOffset(int *pbSuccess)
{
    if (pbSuccess)
        *pbSuccess = TRUE;
    return File().Info().offset;
}

const char *TRNBand::GetUnitType()
{
    return File().Info().unit;
}

int TRNBand::GetOverviewCount()
{
    return static_cast<int>(m_apoOverviews.size());
}

GDALRasterBand *TRNBand::GetOverview(int nOverview)
{
    return nOverview < 0 || nOverview >= GetOverviewCount() ? nullptr : m_apoOverviews[nOverview].get();
}
