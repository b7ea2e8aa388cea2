#include "uper/checkpoint/segment_codec.h"

#include <zstd.h>

#include <memory>

#include "uper/base/check.h"

namespace uper::checkpoint {

std::vector<std::byte> CompressSegment(std::span<const std::byte> raw, int level) {
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(),
                                                                        &ZSTD_freeCCtx);
  UPER_CHECK(context != nullptr, "no memory to compress");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::vector<std::byte> frame(ZSTD_compressBound(raw.size()));
  const std::size_t bytes =
      ZSTD_compress2(context.get(), frame.data(), frame.size(), raw.data(), raw.size());
  UPER_CHECK(ZSTD_isError(bytes) == 0, ZSTD_getErrorName(bytes));
  frame.resize(bytes);
  return frame;
}

void DecompressSegment(std::span<const std::byte> frame, std::span<std::byte> raw,
                       const std::string& what) {
  const auto fail = [&](const std::string& reason) {
    return Error(ErrorKind::kCorrupt, what + ": " + reason);
  };
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != raw.size()) {
    throw fail("does not hold the expected number of bytes");
  }
  if (ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
    throw fail("is not one whole frame");
  }
  const std::size_t bytes = ZSTD_decompress(raw.data(), raw.size(), frame.data(), frame.size());
  if (ZSTD_isError(bytes) != 0) throw fail(ZSTD_getErrorName(bytes));
  if (bytes != raw.size()) throw fail("does not hold the expected number of bytes");
}

}  // namespace uper::checkpoint
