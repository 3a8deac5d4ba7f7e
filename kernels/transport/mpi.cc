#include "kernels/transport/mpi.h"

#include <utility>

#include "kernels/base/status_macros.h"
#include "kernels/transport/mpi_engine.h"

namespace pipeloom {
namespace {

class MpiSendEnd : public SendEnd {
 public:
  MpiSendEnd(std::shared_ptr<MpiEngine> engine, MpiSendChannel* channel)
      : engine_(std::move(engine)), channel_(channel) {}

  char* Slot(int64_t k) override { return channel_->Slot(k); }

  absl::Status Acquire(int64_t k, Deadline deadline) override {
    const auto is_free = [&] { return channel_->CanWrite(k) || !channel_->difference().ok(); };
    const ChannelSpec& spec = channel_->spec();
    RETURN_IF_ERROR(engine_->Wait(is_free, deadline, {spec.source, spec, k, "a free slot"}));
    return channel_->difference();
  }

  void Send(int64_t k) override { channel_->Send(k); }

 private:
  const std::shared_ptr<MpiEngine> engine_;
  MpiSendChannel* const channel_;
};

class MpiReceiveEnd : public ReceiveEnd {
 public:
  MpiReceiveEnd(std::shared_ptr<MpiEngine> engine, MpiReceiveChannel* channel)
      : engine_(std::move(engine)), channel_(channel) {}

  char* Slot(int64_t k) override { return channel_->Slot(k); }

  absl::Status Receive(int64_t k, Deadline deadline) override {
    const auto has_arrived = [&] { return channel_->HasArrived(k) || !channel_->difference().ok(); };
    const ChannelSpec& spec = channel_->spec();
    RETURN_IF_ERROR(engine_->Wait(has_arrived, deadline, {spec.destination, spec, k, "its arrival"}));
    return channel_->difference();
  }

  void Release(int64_t k) override { channel_->Release(k); }

 private:
  const std::shared_ptr<MpiEngine> engine_;
  MpiReceiveChannel* const channel_;
};

class MpiTransport : public Transport {
 public:
  explicit MpiTransport(std::shared_ptr<MpiEngine> engine) : engine_(std::move(engine)) {}

  RankId rank() const override { return engine_->rank(); }
  int size() const override { return engine_->size(); }

  absl::StatusOr<std::unique_ptr<SendEnd>> OpenSend(const ChannelSpec& spec) override {
    ASSIGN_OR_RETURN(MpiSendChannel * channel, engine_->OpenSend(spec));
    return std::make_unique<MpiSendEnd>(engine_, channel);
  }

  absl::StatusOr<std::unique_ptr<ReceiveEnd>> OpenReceive(const ChannelSpec& spec) override {
    ASSIGN_OR_RETURN(MpiReceiveChannel * channel, engine_->OpenReceive(spec));
    return std::make_unique<MpiReceiveEnd>(engine_, channel);
  }

  void Progress() override { engine_->Progress(); }
  void Fail(const absl::Status& status) override { engine_->Fail(status); }
  absl::Status failure() const override { return engine_->failure().status(); }

 private:
  const std::shared_ptr<MpiEngine> engine_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MakeMpiTransport(std::chrono::milliseconds start_deadline) {
  ASSIGN_OR_RETURN(std::shared_ptr<MpiEngine> engine, MpiEngine::Make(Deadline::clock::now() + start_deadline));
  return std::make_unique<MpiTransport>(std::move(engine));
}

}  // namespace pipeloom
