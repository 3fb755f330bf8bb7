// A terrane file as GDAL sees it: one band of heights with overviews. Everything of the format is in libterrane.
#pragma once

#include <gdal_pam.h>
#include <gdal_priv.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "terrane.h"

// A text that libterrane gave away, which says what went wrong.
class TRNError
{
  public:
    TRNError() = default;
    TRNError(const TRNError &) = delete;
    TRNError &operator=(const TRNError &) = delete;
    ~TRNError() { trn_free_string(m_pszText); }

    char **Out() { return &m_pszText; }
    const char *Text() const { return m_pszText ? m_pszText : "no reason given"; }

  private:
    char *m_pszText = nullptr;
};

// An open file: VSI's handle, which is read by one thread at a time, and libterrane's, which reads through it.
class TRNFile
{
  public:
    ~TRNFile();
    static std::shared_ptr<TRNFile> Open(VSILFILE *fp, const char *pszName, unsigned nThreads);

    trn_file *Handle() const { return m_hFile; }
    const trn_info &Info() const { return m_sInfo; }

  private:
    static int64_t Read(void *pUser, uint64_t nOffset, void *pBuffer, size_t nLength);
    static int32_t ReadAll(void *pUser, size_t nCount, const uint64_t *panOffsets, const size_t *panLengths, void **ppBuffers);

    VSILFILE *m_fp = nullptr;
    std::mutex m_oMutex{};
    trn_file *m_hFile = nullptr;
    trn_info m_sInfo{};
};

class TRNDataset final : public GDALPamDataset
{
  public:
    ~TRNDataset() override;
    static int Identify(GDALOpenInfo *poOpenInfo);
    static GDALDataset *Open(GDALOpenInfo *poOpenInfo);

    const OGRSpatialReference *GetSpatialRef() const override;
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 12, 0)
    CPLErr GetGeoTransform(GDALGeoTransform &oTransform) const override;
#else
    CPLErr GetGeoTransform(double *padfTransform) override;
#endif

    const TRNFile &File() const { return *m_poFile; }

  private:
    void ReadSpatialRef();
    void Describe();

    std::shared_ptr<TRNFile> m_poFile{};
    OGRSpatialReference m_oSRS{};
};

// The heights at one level; that of full resolution owns the others.
class TRNBand final : public GDALPamRasterBand
{
  public:
    TRNBand(TRNDataset *poDSIn, unsigned nLevel, const trn_level &sLevel);

    CPLErr IReadBlock(int nBlockXOff, int nBlockYOff, void *pData) override;
    CPLErr IRasterIO(GDALRWFlag eRWFlag, int nXOff, int nYOff, int nXSize, int nYSize, void *pData, int nBufXSize,
                     int nBufYSize, GDALDataType eBufType, GSpacing nPixelSpace, GSpacing nLineSpace,
                     GDALRasterIOExtraArg *psExtraArg) override;
    double GetNoDataValue(int *pbSuccess = nullptr) override;
    double GetMinimum(int *pbSuccess = nullptr) override;
    double GetMaximum(int *pbSuccess = nullptr) override;
    double GetScale(int *pbSuccess = nullptr) override;
    double GetOffset(int *pbSuccess = nullptr) override;
    const char *GetUnitType() override;
    int GetOverviewCount() override;
    GDALRasterBand *GetOverview(int nOverview) override;

    void AddOverview(std::unique_ptr<TRNBand> poBand) { m_apoOverviews.push_back(std::move(poBand)); }

  private:
    const TRNFile &File() const { return static_cast<TRNDataset *>(poDS)->File(); }
    CPLErr ReadPart(const trn_part &sPart, void *pData, size_t nLine);
    double Extreme(double dfHeight, int *pbSuccess) const;

    unsigned m_nLevel;
    std::vector<std::unique_ptr<TRNBand>> m_apoOverviews{};
};

// The threads that a list of options or GDAL_NUM_THREADS ask for; 0 for all.
unsigned TRNThreads(CSLConstList papszOptions);

#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 13, 0)
using TRNOptions = CSLConstList;
#else
using TRNOptions = char **;
#endif
GDALDataset *TRNCreateCopy(const char *pszFilename, GDALDataset *poSrcDS, int bStrict, TRNOptions papszOptions,
                           GDALProgressFunc pfnProgress, void *pProgressData);
