#pragma once

#include <array>
#include <cstdint>

#include "uper/base/check.h"
#include "uper/base/files/byte_stream.h"

namespace uper::minatar {

// A game lists the fields of its state once, in a function VisitState(archive, game), and saves and
// restores itself with one of these archives. Every number comes with its possible range, so that a
// damaged state cannot send a game outside its board.

class StateSaver {
 public:
  explicit StateSaver(ByteWriter& writer) : writer_(writer) {}

  void Int(const int& field, int /*smallest*/, int /*largest*/) {
    writer_.Write(static_cast<std::int32_t>(field));
  }
  void Bool(const bool& field) { writer_.Write(field); }
  template <typename List>
  void Size(const List& list) {
    writer_.Write(static_cast<std::int32_t>(list.size()));
  }

 private:
  ByteWriter& writer_;
};

class StateLoader {
 public:
  explicit StateLoader(ByteReader& reader) : reader_(reader) {}

  void Int(int& field, int smallest, int largest) {
    field = reader_.ReadInRange<std::int32_t>(smallest, largest);
  }
  void Bool(bool& field) { field = reader_.Read<bool>(); }
  // Sets the number of items of the list; the items are visited next.
  template <typename List>
  void Size(List& list) {
    list.resize(reader_.ReadInRange<std::int32_t>(0, List::kCapacity));
  }

 private:
  ByteReader& reader_;
};

// A list in insertion order that allocates nothing. Adding beyond the capacity is an internal
// error: no game can reach it.
template <typename T, int capacity>
class SmallList {
 public:
  static constexpr int kCapacity = capacity;

  int size() const { return size_; }
  T& operator[](int i) { return items_[static_cast<std::size_t>(i)]; }
  const T& operator[](int i) const { return items_[static_cast<std::size_t>(i)]; }
  T* begin() { return items_.data(); }
  T* end() { return items_.data() + size_; }
  const T* begin() const { return items_.data(); }
  const T* end() const { return items_.data() + size_; }

  void clear() { size_ = 0; }
  void resize(int size) { size_ = size; }
  void Add(const T& item) {
    UPER_CHECK(size_ < kCapacity, "more entities than the game can have");
    items_[static_cast<std::size_t>(size_++)] = item;
  }
  void RemoveAt(int index) {
    for (int i = index; i + 1 < size_; ++i) (*this)[i] = (*this)[i + 1];
    --size_;
  }

 private:
  std::array<T, static_cast<std::size_t>(capacity)> items_{};
  int size_ = 0;
};

}  // namespace uper::minatar
