# Writes text files as a C++ table of EmbeddedFile (base/embedded_file.h), so that the program needs
# no files. FILES are relative to FOLDER; FUNCTION, which HEADER declares, returns the table.
#   cmake -DFOLDER=<folder> -DFILES=<a;b> -DHEADER=<header> -DFUNCTION=<name> -DOUTPUT=<file.cc> -P embed_files.cmake
set(rows "")
foreach(file IN LISTS FILES)
  file(READ ${FOLDER}/${file} text)
  string(APPEND rows "    {\"${file}\", R\"~~~(${text})~~~\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"${HEADER}\"

namespace uper {
namespace {

constexpr EmbeddedFile kFiles[] = {
${rows}};

}  // namespace

std::span<const EmbeddedFile> ${FUNCTION}() { return kFiles; }

}  // namespace uper
")
