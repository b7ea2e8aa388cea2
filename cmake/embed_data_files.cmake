# Writes the table of data/*.csv as C++ (stats/data_files.h), so that the program needs no files.
#   cmake -DDATA=<folder> -DOUTPUT=<file.cc> -P embed_data_files.cmake
file(GLOB files RELATIVE ${DATA} ${DATA}/*.csv)
list(SORT files)
set(rows "")
foreach(file IN LISTS files)
  file(READ ${DATA}/${file} text)
  string(APPEND rows "    {\"${file}\", R\"~~~(${text})~~~\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"uper/stats/data_files.h\"

namespace uper {
namespace {

constexpr DataFile kFiles[] = {
${rows}};

}  // namespace

std::span<const DataFile> DataFiles() { return kFiles; }

}  // namespace uper
")
