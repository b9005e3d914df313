// Prices are whole numbers of cents.
export function total(cents) {
  return cents.reduce((sum, price) => sum + price, 0);
}
