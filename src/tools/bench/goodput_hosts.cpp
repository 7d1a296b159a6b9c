#include "tools/bench/goodput_hosts.hpp"

#include <limits>
#include <numeric>

namespace lockstep::bench {

Hosts::Hosts(const GoodputSetup& setup)
    : a_host_(setup.devices_a_host),
      lost_host_(setup.failures.lost_host),
      repair_seconds_(setup.failures.repair_seconds),
      slow_seconds_(setup.stragglers.seconds),
      active_(setup.devices / setup.devices_a_host),
      slow_(setup.devices),
      spares_(setup.failures.spare_hosts) {
  std::iota(active_.begin(), active_.end(), 0);
}

double Hosts::next_repair() const {
  return repairs_.empty() ? std::numeric_limits<double>::infinity() : repairs_.front();
}

double Hosts::next_recovery() const {
  return recoveries_.empty() ? std::numeric_limits<double>::infinity() : recoveries_.front().at;
}

int Hosts::number_of(int device) const {
  return active_[device / a_host_] * a_host_ + device % a_host_;
}

void Hosts::lose(double now, int device) {
  const auto place = active_.begin() + device / a_host_;
  const int host = *place;
  std::erase_if(recoveries_, [&](const Recovery& recovery) {
    if (recovery.device / a_host_ != host) return false;
    slow_[recovery.device] = false;
    --slow_count_;
    return true;
  });
  if (lost_host_ == LostHost::replaced) return;
  active_.erase(place);
  lost_.push_back(host);
  repairs_.push_back(now + repair_seconds_);
  join();
}

void Hosts::repair() {
  repairs_.pop_front();
  ++spares_;
}

void Hosts::join() {
  for (; can_join(); --spares_) {
    active_.push_back(lost_.front());
    lost_.pop_front();
  }
}

void Hosts::slow_down(double now, int device) {
  const int number = number_of(device);
  if (slow_[number]) return;
  slow_[number] = true;
  ++slow_count_;
  recoveries_.push_back({now + slow_seconds_, number});
}

void Hosts::recover() {
  slow_[recoveries_.front().device] = false;
  --slow_count_;
  recoveries_.pop_front();
}

}  // namespace lockstep::bench
